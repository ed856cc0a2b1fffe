"""What the Redis queue says when Redis is away, frozen, full, busy or read-only; and calls that are cancelled."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import pytest_asyncio
import redis.exceptions as driver
from redis.asyncio import Redis

from examples.custom_adapter import RedisJobQueue, open_redis_queue
from examples.custom_adapter.server import refuse_unfit
from tests.examples.redis_server import running_redis
from workflow_adapters import (
    BackendBusyError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    EnqueueJobInput,
    InvalidValueError,
    JobAckFence,
    JobAckOutcome,
    OutcomeUnknownError,
    RetryBackoff,
    ServedDefinition,
    Status,
    UsageError,
)
from workflow_adapters.runtime import JobContext, Worker

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("redis_url")]

SHORT: Final = timedelta(seconds=0.2)
PATIENCE: Final = 30
PREFIX: Final = "jobs:"


def job(stage_id: str = "stage", **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id="run", workflow_id="flow", stage_id=stage_id, **fields)


@asynccontextmanager
async def own_server(*options: str) -> AsyncGenerator[tuple[str, Redis]]:
    """A server for one test to spoil, and a client beside the queue."""
    with running_redis(*options) as url:
        async with Redis.from_url(url, single_connection_client=True) as outside:
            yield url, outside


@asynccontextmanager
async def frozen(outside: Redis) -> AsyncGenerator[None]:
    """The server accepts connections and answers nothing."""
    process_id = (await outside.info("server"))["process_id"]
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process_id, signal.SIGCONT)


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            pass


@pytest_asyncio.fixture
async def queue(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[RedisJobQueue]:
    async with open_redis_queue(redis_url, prefix=f"{request.node.name}:") as opened:
        yield opened


async def test_a_server_that_is_not_there() -> None:
    with pytest.raises(BackendUnavailableError, match="Redis cannot be reached") as caught:
        async with open_redis_queue("unix:///nowhere/redis.sock"):
            pass
    assert caught.value.retryable
    assert isinstance(caught.value.__cause__, driver.ConnectionError)


async def test_a_server_that_dies_is_never_an_empty_queue() -> None:
    async with own_server() as (url, outside), open_redis_queue(url) as queue:
        await queue.enqueue_parallel([job()])
        await outside.shutdown(nosave=True)
        with pytest.raises(BackendUnavailableError):
            await queue.dequeue()


async def test_a_write_whose_answer_is_missing_may_have_happened_and_a_read_has_not() -> None:
    async with own_server() as (url, outside), open_redis_queue(url, call_timeout=SHORT) as queue:
        await queue.enqueue_parallel([job("first")])
        async with frozen(outside):
            with pytest.raises(OutcomeUnknownError) as caught:
                await queue.enqueue_parallel([job("second")])
            assert isinstance(caught.value.__cause__, driver.TimeoutError)
            with pytest.raises(BackendUnavailableError):
                await queue.get_jobs_by_workflow_run("run")

        async def has_happened() -> bool:
            return len(await queue.get_jobs_by_workflow_run("run")) == 2

        # A server that goes on works off what has reached it meanwhile.
        await until(has_happened)
        claimed = await queue.dequeue()
        assert claimed is not None
        assert await queue.complete(claimed.job_id, claimed.fence) is JobAckOutcome.ACKNOWLEDGED


async def test_all_connections_in_use() -> None:
    options: dict[str, Any] = {"max_connections": 1, "busy_timeout": SHORT}
    async with own_server() as (url, outside), open_redis_queue(url, **options) as queue:
        async with frozen(outside):
            waiting = asyncio.create_task(queue.enqueue_parallel([job()]))
            await asyncio.sleep(0)
            with pytest.raises(BackendBusyError, match="max_connections"):
                await queue.dequeue()
        assert len(await waiting) == 1
        assert await queue.dequeue() is not None


async def test_a_full_server_takes_nothing_and_can_be_read() -> None:
    async with own_server() as (url, outside), open_redis_queue(url) as queue:
        await queue.enqueue_parallel([job("a")])
        await outside.config_set("maxmemory", 1)
        with pytest.raises(BackendUnavailableError) as caught:
            await queue.enqueue_parallel([job("a"), job("b")])
        assert isinstance(caught.value.__cause__, driver.OutOfMemoryError)
        assert [stored.stage_id for stored in await queue.get_jobs_by_workflow_run("run")] == ["a"]


async def test_a_replica_takes_no_writes_and_can_be_read() -> None:
    async with own_server() as (url, outside), open_redis_queue(url) as queue:
        await queue.enqueue_parallel([job()])
        await outside.replicaof("127.0.0.1", 1)
        with pytest.raises(BackendUnavailableError, match="takes no writes"):
            await queue.dequeue()
        [stored] = await queue.get_jobs_by_workflow_run("run")
        assert stored.status is Status.PENDING


async def test_a_server_that_somebody_elses_script_holds_up() -> None:
    async with own_server("--busy-reply-threshold", "1") as (url, outside), open_redis_queue(url) as queue:
        spinning = asyncio.ensure_future(outside.execute_command("EVAL", "while true do end", 0))
        with pytest.raises(BackendBusyError):
            await until(queue.dequeue)
        async with Redis.from_url(url) as other:
            await other.script_kill()
        with pytest.raises(driver.ResponseError):
            await spinning
        assert await queue.dequeue() is None


@pytest.mark.parametrize("account", ["", "?password=hunter2"])
async def test_a_password_that_is_missing_or_wrong_is_not_shown(account: str) -> None:
    with running_redis() as url:
        async with Redis.from_url(url) as outside:
            await outside.config_set("requirepass", "sesame")
        with pytest.raises(ConfigurationError) as caught:
            async with open_redis_queue(f"{url}{account}"):
                pass
        assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r}"


async def test_an_account_without_the_right_to_run_scripts() -> None:
    async with own_server() as (url, outside):
        await outside.acl_setuser("worker", enabled=True, passwords=["+secret"], commands=["+@all", "-@scripting"])
        async with open_redis_queue(url.replace("unix://", "unix://worker:secret@")) as queue:
            with pytest.raises(ConfigurationError, match="refuses this client"):
                await queue.dequeue()


@pytest.mark.parametrize("url", ["redis://u:hunter2@host:port/0", "http://hunter2@localhost", "redis://localhost?db=x"])
async def test_a_url_that_can_not_be_read_is_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="can not be read") as caught:
        async with open_redis_queue(url):
            pass
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_server_that_throws_keys_away_when_memory_is_short_is_refused() -> None:
    async with own_server("--maxmemory-policy", "allkeys-lru") as (url, _):
        with pytest.raises(ConfigurationError, match="noeviction"):
            async with open_redis_queue(url):
                pass


@pytest.mark.parametrize("version", ["6.2.14", "", "next"])
async def test_a_server_that_can_not_run_the_scripts_is_refused(version: str) -> None:
    with pytest.raises(ConfigurationError, match="Redis 7"):
        refuse_unfit({"redis_version": version})
    refuse_unfit({"redis_version": "7.0.15", "maxmemory_policy": "volatile-lru"})


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
        await outside.delete(f"{PREFIX}job:{stored['ready']}", f"{PREFIX}job:{stored['delayed']}")
        claimed = await queue.dequeue()
        assert claimed is not None
        assert claimed.stage_id == "running"
        await outside.delete(f"{PREFIX}job:{stored['running']}")
        assert await queue.release_stale_jobs(timedelta(minutes=-1)) == 0
        assert await queue.expire_runaway_jobs(timedelta(minutes=-1)) == 0
        assert await queue.cancel_by_run("run") == 1
        assert [one.stage_id for one in await queue.get_jobs_by_workflow_run("run")] == ["kept"]
        assert await queue.delete_by_run_and_stages("run", stages) == 1
        await outside.zadd(f"{PREFIX}delayed", {stored["delayed"]: 0})
        assert await queue.dequeue() is None
        assert await queue.dequeue([ServedDefinition(workflow_id="flow", version="v1")]) is None
        assert await outside.keys() == [f"{PREFIX}last_id".encode()]


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
        claimed = await queue.dequeue()
        assert claimed is not None
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
