"""Claims: what wakes an idle worker, and what becomes of a claim in flight when the worker ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tests.runtime.support import QUICK, enqueue, job, until, until_noted, until_status, working
from workflow_adapters import Adapters, Serves, Status
from workflow_adapters.errors import ConfigurationError, SchemaError, UsageError
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.runtime import Event, JobContext, Worker
from workflow_adapters.runtime.backoff import Backoff

pytestmark = pytest.mark.asyncio


async def do_nothing(ctx: JobContext) -> None:
    pass


class Queue:
    """The queue of a bundle, with something in front of its claims."""

    def __init__(self, adapters: Any) -> None:
        self._queue = adapters.job_queue
        self.asked = anyio.Event()
        self.answers = anyio.Event()
        self.claims = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class Slow(Queue):
    """Its claims are made at once and answered when `answers` is set."""

    async def dequeue_many(self, limit: int, serves: Serves = None) -> Sequence[DequeueResult]:
        claimed = await self._queue.dequeue_many(limit, serves)
        self.asked.set()
        await self.answers.wait()
        return claimed


async def test_an_idle_worker_listens_all_the_time(adapters: Adapters, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def draw(self: Backoff) -> float:
        pauses.append(0.01)
        return pauses[-1]

    monkeypatch.setattr(Backoff, "draw", draw)
    claims = 0

    class Counting(Queue):
        async def dequeue_many(self, limit: int, serves: Serves = None) -> Sequence[DequeueResult]:
            nonlocal claims
            claims += 1
            return await self._queue.dequeue_many(limit, serves)

    async def polled() -> bool:
        return claims >= 5

    async with working(type("Holder", (), {"job_queue": Counting(adapters)})(), do_nothing):
        await until(polled)
        assert not pauses
        await enqueue(adapters, "a")
        await until_status(adapters, "a", Status.COMPLETED)


async def test_jobs_for_others_do_not_make_it_spin(adapters: Adapters) -> None:
    class Counting(Queue):
        async def dequeue_many(self, limit: int, serves: Serves = None) -> Sequence[DequeueResult]:
            self.claims += 1
            return []

    queue: Any = Counting(adapters)
    await enqueue(adapters, "for somebody else")
    settings: Any = {**QUICK, "poll_interval": timedelta(seconds=1)}
    worker = Worker(queue, do_nothing, **settings)
    with anyio.move_on_after(1.5):
        await worker.run()
    assert 3 <= queue.claims <= 40


@pytest.mark.parametrize("how", ["task.cancel", "anyio", "twice"])
async def test_a_cancelled_claim_is_given_back(adapters: Adapters, how: str) -> None:
    queue: Any = Slow(adapters)
    await enqueue(adapters, "a", "b")
    worker = Worker(queue, do_nothing, **QUICK)
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await worker.run()

    task = asyncio.create_task(run())
    await queue.asked.wait()
    if how == "anyio":
        scope.cancel()
    else:
        task.cancel()
    await asyncio.sleep(0.05)
    if how == "twice":
        task.cancel()
        await asyncio.sleep(0.05)
    queue.answers.set()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled() is (how != "anyio")
    for stage in "ab":
        found = await job(adapters, stage)
        assert (found.status, found.attempt) == (Status.PENDING, 0)
    assert worker.observation.counts[Event.CLAIM_RETURNED] == 2


@pytest.mark.parametrize("how", ["stop", "task.cancel"])
async def test_a_claim_that_gets_no_answer_holds_nobody_up(adapters: Adapters, how: str) -> None:
    queue: Any = Slow(adapters)
    settings: Any = {**QUICK, "lease": timedelta(seconds=60), "drain": timedelta(0)}
    worker = Worker(queue, do_nothing, **settings)
    task = asyncio.create_task(worker.run())
    await queue.asked.wait()
    if how == "stop":
        worker.stop()
    else:
        task.cancel()
    _, unended = await asyncio.wait([task], timeout=5 * QUICK["grace"].total_seconds() + 2)
    assert not unended
    assert task.cancelled() is (how != "stop")


@pytest.mark.parametrize("error", [ConfigurationError("no such role"), SchemaError(["the column wa_lane"], "migrate")])
async def test_trouble_that_passes(adapters: Adapters, error: Exception) -> None:
    class Troubled(Queue):
        async def dequeue_many(self, limit: int, serves: Serves = None) -> Sequence[DequeueResult]:
            self.claims += 1
            if self.claims < 3:
                raise error
            return await self._queue.dequeue_many(limit, serves)

        async def complete_many(self, claims: Any) -> Any:
            if not self.answers.is_set():
                self.answers.set()
                raise error
            return await self._queue.complete_many(claims)

        async def heartbeat(self, claims: Any) -> Any:
            if not self.asked.is_set():
                self.asked.set()
                raise error
            return await self._queue.heartbeat(claims)

    async def handler(ctx: JobContext) -> None:
        await until_noted(worker, Event.HEARTBEAT_FAILED)

    queue: Any = Troubled(adapters)
    await enqueue(adapters, "a")
    async with working(type("Holder", (), {"job_queue": queue})(), handler) as worker:
        await until_status(adapters, "a", Status.COMPLETED)
    assert worker.observation.counts[Event.CLAIM_FAILED] == 2
    assert worker.observation.counts[Event.ACK_RETRIED] == 1


async def test_a_fault_of_the_program_ends_it(adapters: Adapters) -> None:
    class Wrong(Queue):
        async def dequeue_many(self, limit: int, serves: Serves = None) -> Sequence[DequeueResult]:
            raise UsageError("this bundle is closed")

    wrong: Any = Wrong(adapters)
    with pytest.RaisesGroup(pytest.RaisesExc(UsageError), flatten_subgroups=True):
        await Worker(wrong, do_nothing, **QUICK).run()
