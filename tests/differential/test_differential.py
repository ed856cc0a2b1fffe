"""Memory and SQLite give the same answers to the same random script."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.differential.player import Player
from tests.differential.script import Call, Draw
from tests.worked_examples.examples import START
from workflow_adapters import JobQueueFairness, ManualClock, open_adapters

LENGTH = 3000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fairness", [None, JobQueueFairness(max_concurrent_per_group=2)], ids=["plain", "fair"])
@pytest.mark.asyncio
async def test_the_same_answers(seed: int, fairness: JobQueueFairness | None, tmp_path: Path) -> None:
    clocks = [ManualClock(START), ManualClock(START)]
    options: dict[str, Any] = {} if fairness is None else {"fairness": fairness}
    urls = ["memory://", f"sqlite:///{tmp_path}/differential.db"]
    async with AsyncExitStack() as stack:
        players: list[Player] = []
        for url, clock in zip(urls, clocks, strict=True):
            opened = await stack.enter_async_context(open_adapters(url, clock=clock, **options))
            await opened.migrate()
            opened.job_queue.adopt_worker_id("worker")  # type: ignore[attr-defined]  # the built-in queues can
            players.append(Player(opened, clock))
        for number, step in enumerate(Draw(seed).script(LENGTH)):
            memory, sqlite = [await player.play(step) for player in players]
            if memory != sqlite:
                name = step.method if isinstance(step, Call) else "advance"
                pytest.fail(f"call {number} ({name})\n memory: {memory}\n sqlite: {sqlite}")


def test_a_script_is_the_same_each_time_and_does_something() -> None:
    first, second = Draw(7).script(200), Draw(7).script(200)
    assert [getattr(step, "method", None) for step in first] == [getattr(step, "method", None) for step in second]
    assert len({getattr(step, "method", None) for step in first}) > 40
