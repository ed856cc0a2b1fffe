"""The small size of `python -m tests.postgres_queue.chaos --jobs 20000`."""

from __future__ import annotations

import asyncpg
import pytest

from tests.postgres_queue.chaos import chaos

pytestmark = pytest.mark.asyncio

JOBS = 150


async def test_each_job_has_its_effect_once(dsn: str, raw: asyncpg.Connection) -> None:
    outcome = await chaos(dsn, raw, JOBS)
    print(outcome.text())  # noqa: T201 - which errors, and how often
    assert outcome.faults() == []
