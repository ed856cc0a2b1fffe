"""What the Redis queue says when Redis is away, frozen, full, busy, read-only, or not to be trusted with jobs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import redis.exceptions as driver
from redis.asyncio import Redis

from examples.custom_adapter import open_redis_queue
from examples.custom_adapter.server import refuse_unfit
from tests.examples.redis_server import own_server, running_redis
from workflow_adapters import (
    BackendBusyError,
    BackendUnavailableError,
    ConfigurationError,
    EnqueueJobInput,
    JobAckOutcome,
    OutcomeUnknownError,
    Status,
)

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("redis_url")]

SHORT: Final = timedelta(seconds=0.2)
PATIENCE: Final = 30


def job(stage_id: str = "stage", **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id="run", workflow_id="flow", stage_id=stage_id, **fields)


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


async def become_a_replica(outside: Redis) -> None:
    await outside.replicaof("127.0.0.1", 1)


async def miss_its_replicas(outside: Redis) -> None:
    await outside.config_set("min-replicas-to-write", 1)


def put_in_the_way(directory: str) -> None:
    Path(directory, "dump.rdb").mkdir()


async def fail_to_write_to_disk(outside: Redis) -> None:
    put_in_the_way(str((await outside.config_get("dir"))["dir"]))
    await outside.config_set("save", "3600 1")
    await outside.bgsave()

    async def has_failed() -> bool:
        return (await outside.info("persistence"))["rdb_last_bgsave_status"] == "err"

    await until(has_failed)


@pytest.mark.parametrize("stop_writes", [become_a_replica, miss_its_replicas, fail_to_write_to_disk])
async def test_a_server_that_takes_no_writes_can_be_read(stop_writes: Callable[[Redis], Awaitable[None]]) -> None:
    async with own_server() as (url, outside), open_redis_queue(url) as queue:
        await queue.enqueue_parallel([job()])
        await stop_writes(outside)
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
