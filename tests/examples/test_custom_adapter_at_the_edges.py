"""Calls of the Redis queue that are cancelled, keys that others have touched, and values at the end of their range."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from examples.custom_adapter import RedisJobQueue, open_redis_queue
from examples.custom_adapter.opening import DEFAULT_PREFIX
from tests.examples.redis_server import own_server
from workflow_adapters import (
    BackendError,
    EnqueueJobInput,
    InvalidValueError,
    JobAckFence,
    RetryBackoff,
    ServedDefinition,
    Status,
    UsageError,
)
from workflow_adapters.runtime import JobContext, Worker

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("redis_url")]

PATIENCE: Final = 30


def job(stage_id: str = "stage", **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id="run", workflow_id="flow", stage_id=stage_id, **fields)


@pytest_asyncio.fixture
async def queue(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[RedisJobQueue]:
    async with open_redis_queue(redis_url, prefix=f"{request.node.name}:") as opened:
        yield opened


async def test_a_key_of_somebody_elses_is_an_error_of_the_backend(queue: RedisJobQueue, redis_url: str) -> None:
    async with Redis.from_url(redis_url) as outside:
        await outside.set(f"{test_a_key_of_somebody_elses_is_an_error_of_the_backend.__name__}:run:run", "a text")
    with pytest.raises(BackendError, match="WRONGTYPE") as caught:
        await queue.get_jobs_by_workflow_run("run")
    assert not caught.value.retryable


async def test_scripts_that_the_server_has_forgotten_are_sent_again(queue: RedisJobQueue, redis_url: str) -> None:
    await queue.enqueue_parallel([job()])
    async with Redis.from_url(redis_url) as outside:
        await outside.script_flush()
    assert len(await queue.enqueue_parallel([job()])) == 1


async def test_jobs_whose_keys_were_deleted_by_hand_stop_nobody() -> None:
    async with own_server() as (url, outside), open_redis_queue(url) as queue:
        stages = ["ready", "delayed", "running", "kept"]
        later = datetime.now(UTC) + timedelta(seconds=1)
        await queue.enqueue_parallel([job(name, scheduled_for=later if name == "delayed" else None) for name in stages])
        stored = {one.stage_id: one.id for one in await queue.get_jobs_by_workflow_run("run")}
        await outside.delete(f"{DEFAULT_PREFIX}job:{stored['ready']}", f"{DEFAULT_PREFIX}job:{stored['delayed']}")
        claimed = await queue.dequeue()
        assert claimed is not None
        assert claimed.stage_id == "running"
        await outside.delete(f"{DEFAULT_PREFIX}job:{stored['running']}")
        assert await queue.release_stale_jobs(timedelta(minutes=-1)) == 0
        assert await queue.expire_runaway_jobs(timedelta(minutes=-1)) == 0
        assert await queue.cancel_by_run("run") == 1
        assert [one.stage_id for one in await queue.get_jobs_by_workflow_run("run")] == ["kept"]
        assert await queue.delete_by_run_and_stages("run", stages) == 1
        await outside.zadd(f"{DEFAULT_PREFIX}delayed", {stored["delayed"]: 0})
        assert await queue.dequeue() is None
        assert await queue.dequeue([ServedDefinition(workflow_id="flow", version="v1")]) is None
        assert await outside.keys() == [f"{DEFAULT_PREFIX}last_id".encode()]


async def test_deleted_and_replaced_jobs_leave_no_key_behind() -> None:
    async with own_server() as (url, outside), open_redis_queue(url) as queue:
        later = datetime.now(UTC) + timedelta(hours=1)
        stages = ["delayed", "completed", "suspended", "running", "ready"]
        for _ in range(2):
            jobs = [job(name, scheduled_for=later if name == "delayed" else None) for name in stages]
            await queue.enqueue_parallel(jobs)
            completed, suspended, _ = await queue.dequeue_many(3)
            await queue.complete(completed.job_id, completed.fence)
            await queue.suspend(suspended.job_id, later, suspended.fence)
        assert await queue.delete_by_run_and_stages("run", stages) == len(stages)
        assert await outside.keys() == [f"{DEFAULT_PREFIX}last_id".encode()]


async def test_names_that_look_like_a_workflow_and_its_version(queue: RedisJobQueue) -> None:
    other = EnqueueJobInput(workflow_run_id="run", workflow_id="a:b", stage_id="stage")
    await queue.enqueue_parallel([other])
    assert await queue.dequeue([ServedDefinition(workflow_id="a", version="b")]) is None
    assert await queue.dequeue([ServedDefinition(workflow_id="a:b", version="c")]) is not None


async def test_cancelled_calls_leave_no_connection_behind(redis_url: str) -> None:
    chance = random.Random(4)
    prefix = "cancelled:"
    async with open_redis_queue(redis_url, prefix=prefix, max_connections=2) as queue:

        async def work(number: int) -> None:
            await queue.enqueue_parallel([job(f"stage-{number}")])
            claimed = await queue.dequeue()
            if claimed is not None:
                await queue.complete(claimed.job_id, claimed.fence)

        for _ in range(20):
            tasks = [asyncio.create_task(work(number)) for number in range(8)]
            for _ in range(chance.randrange(40)):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
                if chance.random() < 0.5:
                    await asyncio.sleep(0)
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(work(number) for number in range(8)))


async def test_a_closed_queue_says_so(redis_url: str) -> None:
    async with open_redis_queue(redis_url) as queue:
        pass
    with pytest.raises(UsageError, match="closed"):
        await queue.dequeue()


async def test_a_naive_fence_is_refused_and_changes_nothing(queue: RedisJobQueue) -> None:
    await queue.enqueue_parallel([job()])
    claimed = await queue.dequeue()
    assert claimed is not None
    naive = JobAckFence(started_at=claimed.started_at.replace(tzinfo=None), attempt=1)
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: queue.complete(claimed.job_id, naive),
        lambda: queue.complete_many([(claimed.job_id, naive)]),
    ]
    for call in calls:
        with pytest.raises(InvalidValueError, match="started_at"):
            await call()
    [stored] = await queue.get_jobs_by_workflow_run("run")
    assert stored.status is Status.RUNNING


@pytest.mark.parametrize(
    ("backoff", "delay"),
    [
        (RetryBackoff(base=timedelta(0), factor=1e308), timedelta(0)),
        (RetryBackoff(factor=1e308, cap=timedelta(days=3)), timedelta(days=3)),
        (RetryBackoff(base=timedelta.max, cap=timedelta.max), None),
    ],
)
async def test_extreme_backoffs(redis_url: str, backoff: RetryBackoff, delay: timedelta | None) -> None:
    async with open_redis_queue(redis_url, prefix=f"backoff-{delay}:", backoff=backoff) as queue:
        await queue.enqueue_parallel([job()])
        await queue.dequeue()
        await queue.release_stale_jobs(timedelta(minutes=-1))
        claimed = await queue.dequeue()
        assert claimed is not None
        assert claimed.attempt == 2  # whose power is beyond every float
        await queue.fail(claimed.job_id, "broken", True, claimed.fence)
        [stored] = await queue.get_jobs_by_workflow_run("run")
        assert stored.next_poll_at is not None
        if delay is None:
            assert stored.next_poll_at == datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)
        else:
            assert stored.next_poll_at == stored.updated_at + delay


async def test_a_worker_of_the_runtime_works_on_it(queue: RedisJobQueue) -> None:
    await queue.enqueue_parallel([job(f"stage-{number}") for number in range(5)])
    done: list[str] = []

    async def handle(ctx: JobContext) -> None:
        done.append(ctx.job.stage_id)
        if len(done) == 5:
            worker.stop()

    worker = Worker(queue, handle, concurrency=2)
    async with asyncio.timeout(PATIENCE):
        await worker.run()
    assert sorted(done) == [f"stage-{number}" for number in range(5)]
    assert {one.status for one in await queue.get_jobs_by_workflow_run("run")} == {Status.COMPLETED}
