"""The cap holds at every instant, under processes that do everything to their jobs that can be done."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter

import asyncpg
import pytest

from tests.postgres_queue.hammer import ENOUGH
from tests.postgres_queue.support import deadlocks

pytestmark = pytest.mark.asyncio

SECONDS = float(os.environ.get("HAMMER_SECONDS", "1.5"))
PROCESSES = 2
CAP = 2
RUNNING = """
SELECT coalesce(max(number), 0)
FROM (
    SELECT count(*) AS number
    FROM job_queue
    WHERE status = 'RUNNING'
    GROUP BY coalesce(payload ->> '_groupKey', '')
) AS groups
"""


async def hammer(dsn: str, group_by: str, costly_ms: float) -> Counter[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.postgres_queue.hammer",
        dsn,
        str(SECONDS),
        str(CAP),
        group_by,
        str(costly_ms),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return Counter(json.loads(said))


@pytest.mark.parametrize("costly_ms", [0, 2], ids=["looks are costly", "looks are cheap"])
@pytest.mark.parametrize("group_by", ["_groupKey", "tenant.id"])
async def test_no_group_ever_has_more_running_jobs_than_its_cap(
    dsn: str, raw: asyncpg.Connection, group_by: str, costly_ms: float
) -> None:
    hammers = [asyncio.create_task(hammer(dsn, group_by, costly_ms)) for _ in range(PROCESSES)]
    look = await raw.prepare(RUNNING)
    most: list[int] = []
    while not all(task.done() for task in hammers):
        most.append(await look.fetchval())
    counts = sum([task.result() for task in hammers], Counter[str]())
    assert max(most) == CAP
    assert counts.pop("claimed") >= PROCESSES * ENOUGH
    assert not counts
    assert await deadlocks(dsn) == 0
