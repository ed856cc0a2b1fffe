"""A lease begins when the lock was had, not when it was asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.sqlite.support import Lock
from workflow_adapters import EnqueueJobInput, JobAckFence, JobQueueFairness, ManualClock
from workflow_adapters.sqlite.bundle import SqliteAdapters, open_sqlite

pytestmark = pytest.mark.asyncio

WAIT = timedelta(seconds=40)
LEASE = timedelta(seconds=60)
JOB = EnqueueJobInput(workflow_run_id="r", workflow_id="w", stage_id="s", payload={})
HELD = EnqueueJobInput(workflow_run_id="held", workflow_id="w", stage_id="s", payload={}, priority=9)

Call = Callable[[SqliteAdapters], Coroutine[Any, Any, datetime]]


async def dequeue(adapters: SqliteAdapters) -> datetime:
    job = await adapters.job_queue.dequeue()
    assert job is not None
    return job.started_at


async def dequeue_many(adapters: SqliteAdapters) -> datetime:
    (job,) = await adapters.job_queue.dequeue_many(1)
    return job.started_at


async def lease_outbox_events(adapters: SqliteAdapters) -> datetime:
    return (await adapters.persistence.lease_outbox_events(10, LEASE)).expires_at - LEASE


async def touch(adapters: SqliteAdapters) -> datetime:
    (job,) = await adapters.job_queue.get_jobs_by_workflow_run("held")
    await adapters.job_queue.touch_job(job.id)
    return await locked_at(adapters)


async def heartbeat(adapters: SqliteAdapters) -> datetime:
    (job,) = await adapters.job_queue.get_jobs_by_workflow_run("held")
    assert job.started_at is not None
    await adapters.job_queue.heartbeat([(job.id, JobAckFence(started_at=job.started_at, attempt=job.attempt))])
    return await locked_at(adapters)


async def locked_at(adapters: SqliteAdapters) -> datetime:
    (job,) = await adapters.job_queue.get_jobs_by_workflow_run("held")
    assert job.locked_at is not None
    return job.locked_at


@pytest.mark.parametrize("fairness", [None, JobQueueFairness(max_concurrent_per_group=9)], ids=["", "fair"])
@pytest.mark.parametrize("call", [dequeue, dequeue_many, touch, heartbeat, lease_outbox_events])
async def test_it_begins_under_the_lock(
    path: Path, lock: Lock, pausing: threading.Event, call: Call, fairness: JobQueueFairness | None
) -> None:
    clock = ManualClock()
    async with open_sqlite(path, clock=clock, fairness=fairness) as adapters:
        assert isinstance(adapters, SqliteAdapters)
        await adapters.migrate()
        await adapters.job_queue.enqueue_parallel([JOB, HELD])
        assert await adapters.job_queue.dequeue() is not None
        lock.take()
        pausing.clear()
        calling = asyncio.create_task(call(adapters))
        await asyncio.to_thread(pausing.wait, 10)
        clock.advance(WAIT)
        lock.release()
        assert await calling == clock.now()
