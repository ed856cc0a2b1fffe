"""Stopping: drain, cancel, give back, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from datetime import timedelta

import anyio
import pytest

from tests.runtime.support import QUICK, enqueue, job, until, until_noted, until_status, working
from workflow_adapters import Adapters, BuiltInAdapters, Status, open_adapters
from workflow_adapters.runtime import Event, JobContext, Worker

pytestmark = pytest.mark.asyncio
CYCLES = 300


async def test_stop_lets_running_handlers_end(adapters: Adapters) -> None:
    go_on = asyncio.Event()

    async def handler(ctx: JobContext) -> None:
        await go_on.wait()

    await enqueue(adapters, "s")
    async with working(adapters, handler) as worker:
        await until_status(adapters, "s", Status.RUNNING)
        worker.stop()
        await until_noted(worker, Event.WORKER_STOPPING)
        await enqueue(adapters, "late")
        go_on.set()
    assert (await job(adapters, "s")).status is Status.COMPLETED
    assert (await job(adapters, "late")).status is Status.PENDING


async def test_a_handler_that_outlasts_the_drain_is_cancelled_and_its_job_given_back(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        await asyncio.sleep(60)

    await enqueue(adapters, "s")
    async with working(adapters, handler, drain=timedelta(milliseconds=50)):
        await until_status(adapters, "s", Status.RUNNING)
    found = await job(adapters, "s")
    assert (found.status, found.attempt) == (Status.PENDING, 0)
    assert found.last_error == "the worker stopped before the job ended"


async def test_claims_that_no_handler_has_seen_are_given_back(adapters: BuiltInAdapters) -> None:
    claimed = asyncio.Event()

    class Slow:
        """Its claims take until the worker is stopped."""

        def __getattr__(self, name: str) -> object:
            return getattr(adapters.job_queue, name)

        async def dequeue_many(self, limit: int, serves: object = None) -> object:
            found = await adapters.job_queue.dequeue_many(limit)
            claimed.set()
            await stopped.wait()
            return found

    async def handler(ctx: JobContext) -> None:
        raise AssertionError("run after the stop")

    stopped = asyncio.Event()
    await enqueue(adapters, "a", "b")
    holder = type("Holder", (), {"job_queue": Slow()})()
    async with working(holder, handler) as worker:
        await claimed.wait()
        worker.stop()
        stopped.set()
    assert worker.observation.counts[Event.CLAIM_RETURNED] == 2
    for stage in ("a", "b"):
        found = await job(adapters, stage)
        assert (found.status, found.attempt) == (Status.PENDING, 0)


@pytest.mark.parametrize("native", [False, True], ids=["anyio", "task.cancel"])
async def test_cancelling_the_worker_ends_it(adapters: Adapters, native: bool) -> None:
    ended: list[str] = []

    async def handler(ctx: JobContext) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(ctx.job.stage_id)

    await enqueue(adapters, "a", "b")
    worker = Worker(adapters.job_queue, handler, **QUICK)
    if native:
        task = asyncio.create_task(worker.run())
        await until_status(adapters, "b", Status.RUNNING)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        async with anyio.create_task_group() as tasks:
            await tasks.start(worker.run)
            await until_status(adapters, "b", Status.RUNNING)
            tasks.cancel_scope.cancel()
    assert sorted(ended) == ["a", "b"]
    assert worker.running == 0


def workers_alive() -> int:
    """Those of earlier tests among them, to which the report of a test may refer."""
    gc.collect()
    return sum(isinstance(thing, Worker) for thing in gc.get_objects())


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
async def test_hundreds_of_starts_and_stops_leave_nothing_behind(url: str) -> None:
    async def handler(ctx: JobContext) -> None:
        return None

    async with open_adapters(url) as adapters:

        async def cycle() -> None:
            worker = Worker(adapters.job_queue, handler, adapters=adapters, **QUICK)
            async with anyio.create_task_group() as tasks:
                await tasks.start(worker.run)
                worker.stop()

        await cycle()
        tasks, threads = len(asyncio.all_tasks()), threading.active_count()
        workers = workers_alive()
        for _ in range(CYCLES):
            await cycle()
        assert len(asyncio.all_tasks()) == tasks
        assert threading.active_count() == threads

        async def forgotten() -> bool:
            return workers_alive() <= workers + 1

        # What an exception or a timer of the last ones still refers to goes a little later.
        await until(forgotten)
