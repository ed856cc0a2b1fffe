"""All backends give the same answers to the same random script."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.differential.player import Player
from tests.differential.script import Advance, Call, Draw
from tests.worked_examples.examples import START
from workflow_adapters import JobQueueFairness, ManualClock, RetryBackoff, open_adapters

LENGTH = 3000
FAIRNESS = [None, JobQueueFairness(max_concurrent_per_group=2)]


async def compare(first: Player, second: Player, script: list[Call | Advance]) -> None:
    for number, step in enumerate(script):
        expected, observed = await first.play(step), await second.play(step)
        if observed != expected:
            name = step.method if isinstance(step, Call) else "advance"
            pytest.fail(f"call {number} ({name})\n expected: {expected}\n observed: {observed}")


@asynccontextmanager
async def playing(url: str, options: dict[str, Any], *, database_clock: bool = False) -> AsyncGenerator[Player]:
    clock = ManualClock(START)
    async with open_adapters(url, clock=clock, worker_id="worker", **options) as opened:
        yield Player(opened, clock, database_clock=database_clock)


async def migrate(url: str) -> None:
    async with open_adapters(url) as opened:
        await opened.migrate()


def options_of(fairness: JobQueueFairness | None) -> dict[str, Any]:
    return {} if fairness is None else {"fairness": fairness}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fairness", FAIRNESS, ids=["plain", "fair"])
@pytest.mark.asyncio
async def test_memory_and_sqlite_give_the_same_answers(
    seed: int, fairness: JobQueueFairness | None, tmp_path: Path
) -> None:
    url, options = f"sqlite:///{tmp_path}/differential.db", options_of(fairness)
    await migrate(url)
    async with playing("memory://", options) as memory, playing(url, options) as sqlite:
        await compare(memory, sqlite, Draw(seed).script(LENGTH))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("fairness", FAIRNESS, ids=["plain", "fair"])
@pytest.mark.asyncio
async def test_memory_and_postgres_give_the_same_answers(
    seed: int, fairness: JobQueueFairness | None, postgres_dsn: str
) -> None:
    options = {**options_of(fairness), "backoff": RetryBackoff(base=timedelta(0))}
    await migrate(postgres_dsn)
    script = Draw(seed, database_clock=True).script(LENGTH)
    async with (
        playing("memory://", options, database_clock=True) as memory,
        playing(postgres_dsn, options, database_clock=True) as postgres,
    ):
        await compare(memory, postgres, script)


def test_a_script_is_the_same_each_time_and_does_something() -> None:
    first, second = Draw(7).script(200), Draw(7).script(200)
    assert [getattr(step, "method", None) for step in first] == [getattr(step, "method", None) for step in second]
    assert len({getattr(step, "method", None) for step in first}) > 40
