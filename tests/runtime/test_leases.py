"""Leases under trouble: no job is ever acknowledged by a lease that was lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.support import enqueue, job, until_noted, until_status, working
from workflow_adapters import Adapters, BackendUnavailableError, JobQueue, Status, open_adapters
from workflow_adapters.runtime import Event, JobContext
from workflow_adapters.runtime.heartbeat import Heartbeat
from workflow_adapters.runtime.leases import HeldLeases
from workflow_adapters.runtime.observation import Observation

pytestmark = pytest.mark.asyncio
LEASE = timedelta(seconds=0.4)


class Unanswering:
    """A queue whose heartbeats get no answer."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self.asked = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def heartbeat(self, claims: object) -> list[Any]:
        self.asked.set()
        return await asyncio.get_running_loop().create_future()


async def test_heartbeats_keep_a_long_job(adapters: Adapters) -> None:
    lease = timedelta(seconds=2)  # long enough for a machine that is busy with other tests

    async def handler(ctx: JobContext) -> None:
        for _ in range(6):
            await asyncio.sleep(lease.total_seconds() / 4)
            assert await adapters.job_queue.release_stale_jobs(lease) == 0

    await enqueue(adapters, "s")
    async with working(adapters, handler, lease=lease) as worker:
        done = await until_status(adapters, "s", Status.COMPLETED)
    assert done.attempt == 1
    assert worker.observation.counts[Event.LEASE_LOST] == 0


async def test_a_lease_ends_while_a_heartbeat_waits_for_its_answer(adapters: Adapters) -> None:
    queue: Any = Unanswering(adapters.job_queue)
    observation = Observation("worker")
    leases = HeldLeases(timedelta(seconds=4), observation, None)
    await enqueue(adapters, "s")
    claimed = await adapters.job_queue.dequeue()
    assert claimed is not None
    lease = leases.hold(claimed, time.monotonic())
    heartbeat = asyncio.create_task(Heartbeat(queue, leases, timedelta(seconds=1), observation).run())
    await queue.asked.wait()
    lease.expires = time.monotonic()
    await lease.lost.wait()
    assert observation.counts[Event.HEARTBEAT_FAILED] == 0
    heartbeat.cancel()
    await asyncio.wait([heartbeat])


async def test_a_handler_that_blocks_the_loop_loses_its_lease_and_is_not_acknowledged(adapters: Adapters) -> None:
    ended: list[int] = []

    async def handler(ctx: JobContext) -> None:
        if ctx.job.attempt == 1:
            time.sleep(2 * LEASE.total_seconds())  # noqa: ASYNC251  # blocking the loop is the point
            await asyncio.sleep(60)
        ended.append(ctx.job.attempt)

    await enqueue(adapters, "s")
    async with working(adapters, handler, lease=LEASE) as worker:
        await until_noted(worker, Event.LEASE_LOST)
        assert worker.observation.counts[Event.LOOP_BLOCKED] == 1
        assert (await job(adapters, "s")).status is Status.RUNNING, "nothing was acknowledged"
        assert await adapters.job_queue.release_stale_jobs(LEASE) == 1
        done = await until_status(adapters, "s", Status.COMPLETED)
    assert (done.attempt, ended) == (2, [2])


async def test_a_blocked_loop_keeps_its_lease_with_a_heartbeat_thread(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"

    @asynccontextmanager
    async def open_queue() -> AsyncGenerator[JobQueue]:
        async with open_adapters(url) as again:
            yield again.job_queue

    async def handler(ctx: JobContext) -> None:
        await asyncio.sleep(LEASE.total_seconds())  # the thread has opened its queue by now
        time.sleep(2 * LEASE.total_seconds())  # noqa: ASYNC251  # blocking the loop is the point

    async with open_adapters(url) as adapters:
        await adapters.migrate()
        await enqueue(adapters, "s")
        async with working(adapters, handler, lease=LEASE, heartbeat_thread=open_queue) as worker:
            done = await until_status(adapters, "s", Status.COMPLETED)
    assert done.attempt == 1
    assert worker.observation.counts[Event.LOOP_BLOCKED] == 1
    assert worker.observation.counts[Event.LEASE_LOST] == 0


async def test_a_handler_that_swallows_its_cancellation_is_left_behind(adapters: Adapters) -> None:
    swallowed: list[str] = []
    let_go = asyncio.Event()

    async def handler(ctx: JobContext) -> None:
        if ctx.job.attempt > 1:
            return
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                swallowed.append(ctx.job.stage_id)

    await enqueue(adapters, "s")
    async with working(adapters, handler, lease=LEASE, concurrency=1) as worker:
        await until_status(adapters, "s", Status.RUNNING)
        await adapters.job_queue.release_stale_jobs(timedelta(seconds=-1))
        done = await until_status(adapters, "s", Status.COMPLETED)
    let_go.set()
    await asyncio.sleep(0)
    assert swallowed == ["s"]
    assert worker.observation.counts[Event.HANDLER_WILL_NOT_END] == 1
    assert done.attempt == 2, "its slot and its job went to the next attempt"


class Flaky:
    """A queue whose acknowledgements or heartbeats fail while `down` is set."""

    def __init__(self, queue: JobQueue, *methods: str) -> None:
        self._queue = queue
        self._methods = methods
        self.down = True
        self.failures = 0

    def __getattr__(self, name: str) -> object:
        method = getattr(self._queue, name)
        if name not in self._methods:
            return method

        async def call(*args: object) -> object:
            if self.down:
                self.failures += 1
                raise BackendUnavailableError("the database is away")
            return await method(*args)

        return call


async def test_an_acknowledgement_outlasts_a_database_blip(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        return None

    await enqueue(adapters, "s")
    flaky = Flaky(adapters.job_queue, "complete_many")
    holder = type("Holder", (), {"job_queue": flaky})()
    async with working(holder, handler) as worker:
        await until_noted(worker, Event.ACK_RETRIED)
        flaky.down = False
        done = await until_status(adapters, "s", Status.COMPLETED)
    assert (done.attempt, worker.observation.counts[Event.JOB_COMPLETED]) == (1, 1)


async def test_an_acknowledgement_is_given_up_when_the_lease_is_lost(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        return None

    await enqueue(adapters, "s")
    flaky = Flaky(adapters.job_queue, "complete_many", "heartbeat")
    holder = type("Holder", (), {"job_queue": flaky})()
    async with working(holder, handler, lease=LEASE) as worker:
        await until_noted(worker, Event.ACK_ABANDONED)
        await until_noted(worker, Event.LEASE_LOST)
    assert (await job(adapters, "s")).status is Status.RUNNING


async def test_queue_trouble_is_not_taken_for_an_empty_queue(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        return None

    flaky = Flaky(adapters.job_queue, "dequeue", "dequeue_many")
    holder = type("Holder", (), {"job_queue": flaky})()
    await enqueue(adapters, "s")
    async with working(holder, handler) as worker:
        await until_noted(worker, Event.CLAIM_FAILED)
        flaky.down = False
        await until_status(adapters, "s", Status.COMPLETED)
    assert worker.observation.counts[Event.CLAIM_FAILED] == flaky.failures


async def test_a_superseded_acknowledgement_is_told(adapters: Adapters) -> None:
    told: list[int] = []

    async def handler(ctx: JobContext) -> None:
        if ctx.job.attempt == 1:
            await adapters.job_queue.release_stale_jobs(timedelta(seconds=-1))

    await enqueue(adapters, "s")
    async with working(adapters, handler, on_superseded=lambda lost: told.append(lost.attempt)) as worker:
        await until_status(adapters, "s", Status.COMPLETED)
    assert told == [1]
    assert worker.observation.counts[Event.ACK_SUPERSEDED] == 1
