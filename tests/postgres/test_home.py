"""Opening and closing, pools that are handed in, and plans that have become stale."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
import trio

from tests.postgres.support import (
    ASLEEP,
    a_run,
    end_backends,
    inside,
    is_asleep,
    opened,
    query,
    run,
    run_and_fail,
    until,
)
from workflow_adapters import (
    BackendBusyError,
    BackendUnavailableError,
    ConfigurationError,
    NotFoundError,
    UpdateRunInput,
    UsageError,
)
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.plans import PlanWatch


@pytest.mark.asyncio
async def test_opening_connects_to_nothing(dsn: str) -> None:
    async with open_postgres("postgresql://nobody@127.0.0.1:1/nothing") as adapters:
        with pytest.raises(BackendUnavailableError):
            await adapters.persistence.get_run("x")
    async with open_postgres(dsn) as adapters:
        assert adapters.pool_stats == (0, 0, 0)


@pytest.mark.asyncio
async def test_leaving_lets_calls_come_to_their_end(dsn: str) -> None:
    async with opened(dsn) as it:
        sleeping = asyncio.create_task(it.database.read(run("SELECT pg_sleep(0.2), 7")))
        await until(lambda: it.home.pool.stats.in_use)
    assert (await sleeping)[0][1] == 7


@pytest.mark.asyncio
async def test_leaving_does_not_wait_for_ever(dsn: str) -> None:
    async with opened(dsn, close_timeout=timedelta(milliseconds=50)) as it:
        sleeping = asyncio.create_task(it.database.read(run("SELECT pg_sleep(60)")))
        await until(lambda: it.home.pool.stats.in_use)
    with pytest.raises((BackendUnavailableError, UsageError)):
        await sleeping
    await end_backends(dsn)


@pytest.mark.asyncio
async def test_what_the_block_raises_comes_out_as_it_is(dsn: str) -> None:
    failure = KeyError("mine")

    async def fail(_: object) -> None:
        raise failure

    with pytest.raises(KeyError) as caught:
        await inside(open_postgres(dsn), fail)
    assert caught.value is failure


def test_another_kind_of_event_loop_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="asyncio"):
            await inside(open_postgres("postgresql://"), lambda adapters: adapters.check_schema())

    trio.run(main)


@pytest.mark.asyncio
async def test_an_error_of_ours_costs_no_round_trip_more(dsn: str) -> None:
    async with opened(dsn, max_connections=1) as it:
        await it.persistence.get_run("x")
        statements: list[str] = []
        connection = await it.home.pool.acquire()
        assert isinstance(connection, asyncpg.Connection)
        connection.add_query_logger(lambda record: statements.append(record.query))
        await it.home.pool.release(connection)
        with pytest.raises(NotFoundError):
            await it.persistence.update_run("nobody", UpdateRunInput())
        await asyncio.sleep(0)
    assert [sql.split()[0] for sql in statements] == ["UPDATE", "SELECT"]


@pytest.mark.asyncio
async def test_a_callers_pool_is_used_and_left_as_it_was(dsn: str) -> None:
    async with asyncpg.create_pool(dsn, min_size=0, max_size=4) as pool:
        async with open_postgres(pool) as adapters:
            run_id = (await adapters.persistence.create_run(a_run())).id
            async with adapters.transaction() as tx:
                assert await tx.persistence.get_run(run_id) is not None
                assert adapters.pool_stats.in_use == 1
            await asyncio.gather(*(adapters.persistence.get_run(run_id) for _ in range(20)))
        assert not pool.is_closing()
        assert await pool.fetchval("SELECT 1") == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("fails", [False, True])
async def test_a_callers_pool_gets_a_connection_back_that_was_handed_on(dsn: str, fails: bool) -> None:
    async with (
        asyncpg.create_pool(dsn, min_size=0, max_size=1) as pool,
        open_postgres(pool, acquire_timeout=timedelta(seconds=1)) as adapters,
    ):
        with suppress(NotFoundError):
            async with adapters.transaction() as tx:
                await tx.connection.execute("SET work_mem = '1MB'")
                if fails:
                    raise NotFoundError("run", "x")
        assert adapters.pool_stats.in_use == 0
        assert await adapters.persistence.get_run("x") is None


@pytest.mark.asyncio
async def test_a_callers_pool_that_is_exhausted(dsn: str) -> None:
    async with (
        asyncpg.create_pool(dsn, min_size=0, max_size=1) as pool,
        open_postgres(pool, acquire_timeout=timedelta(milliseconds=50)) as adapters,
    ):
        async with pool.acquire():
            with pytest.raises(BackendBusyError, match=r"within 0\.05 s: 1 of at most 1 are open"):
                await adapters.persistence.get_run("x")
        assert await adapters.persistence.get_run("x") is None


@pytest.mark.asyncio
async def test_a_callers_pool_that_is_closed_or_not_open_yet(dsn: str) -> None:
    pool = asyncpg.create_pool(dsn, min_size=0)
    async with open_postgres(pool) as adapters:
        with pytest.raises(UsageError, match="not initialized"):
            await adapters.persistence.get_run("x")
        async with pool:
            assert await adapters.persistence.get_run("x") is None
        with pytest.raises(UsageError, match="closed"):
            await adapters.persistence.get_run("x")


@pytest.mark.asyncio
async def test_a_callers_pool_gets_its_slots_back_whatever_happens(dsn: str) -> None:
    async with asyncpg.create_pool(dsn, min_size=0, max_size=1) as pool, opened(pool) as it:
        for _ in range(3):
            cancelled = asyncio.create_task(it.database.write(run("SELECT pg_sleep(60)"), single=True))
            await until(lambda: is_asleep(dsn))
            cancelled.cancel()
            await asyncio.wait([cancelled])
            sleeping = asyncio.create_task(it.database.read(run("SELECT pg_sleep(60)")))
            await until(lambda: is_asleep(dsn))
            await query(dsn, f"SELECT pg_terminate_backend(pid) {ASLEEP}")
            # A read is begun anew once, on another connection.
            await until(lambda: is_asleep(dsn))
            await query(dsn, f"SELECT pg_cancel_backend(pid) {ASLEEP}")
            with pytest.raises(BackendBusyError):
                await sleeping
        assert await it.database.read(run("SELECT 1")) == [(1,)]
        assert it.home.pool.stats.in_use == 0


@pytest.mark.asyncio
async def test_a_callers_pool_gets_connections_back_outside_of_a_transaction(dsn: str) -> None:
    """asyncpg itself would end the transaction too, and complain."""
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    async with asyncpg.create_pool(dsn, min_size=0, max_size=1) as pool, opened(pool) as it:
        with pytest.raises(NotFoundError):
            await it.database.write(run_and_fail("SELECT 1"))
        cancelled = asyncio.create_task(it.database.write(run("SELECT pg_sleep(60)")))
        await until(lambda: is_asleep(dsn))
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert await it.database.read(run("SELECT 1")) == [(1,)]
    assert complaints == []


@pytest.mark.asyncio
@pytest.mark.parametrize("target", [7, None, object()])
async def test_something_that_is_neither_a_dsn_nor_a_pool(target: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"a DSN or an asyncpg\.Pool"):
        await inside(open_postgres(target), lambda adapters: adapters.check_schema())


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_slow_statement_gets_another_plan_at_most_once_a_second() -> None:
    time = Time()
    watch = PlanWatch(time)
    assert watch.begin("q") is None
    watch.watch("q")
    watch.watch("q")
    time.now += 2
    assert run_for(time, watch, 0.001) == ""
    assert run_for(time, watch, 0.006) == ""
    renewed = run_for(time, watch, 0.006)
    assert renewed
    assert run_for(time, watch, 0.001) == renewed
    time.now += 2
    assert run_for(time, watch, 0.006) == renewed
    assert run_for(time, watch, 0.001) not in ("", renewed)


def test_a_network_that_is_always_slow_gets_ever_fewer_plans() -> None:
    time = Time()
    watch = PlanWatch(time)
    watch.watch("q")
    marks = {run_for(time, watch, 0.02, pause=0.5) for _ in range(7200)}
    assert 5 < len(marks) < 20
    # A plan that turns bad after it was good for long is still replaced at once.
    kept = {run_for(time, watch, 0.001, pause=0.5) for _ in range(2000)}
    assert kept == {run_for(time, watch, 0.006)}
    assert run_for(time, watch, 0.001) not in kept


def run_for(time: Time, watch: PlanWatch, seconds: float, *, pause: float = 0.0) -> str:
    begun = watch.begin("q")
    assert begun is not None
    mark = watch.mark("q")
    time.now += seconds
    watch.end("q", begun)
    time.now += pause
    return mark


def test_a_statement_that_was_not_used_for_long_gets_another_plan() -> None:
    time = Time()
    watch = PlanWatch(time)
    watch.watch("q")
    time.now += 61
    assert watch.begin("q") == time.now
    renewed = watch.mark("q")
    assert renewed
    assert watch.begin("other") is None
    time.now += 30
    watch.begin("q")
    assert watch.mark("q") == renewed


@pytest.mark.asyncio
async def test_another_mark_is_another_prepared_statement(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT 17%'"
    async with opened(dsn, max_connections=1) as it:
        time = Time()
        monkeypatch.setattr(it.home.engine, "plans", PlanWatch(time))
        it.database.watch_plan("SELECT 17")
        ask: Callable[..., Any] = lambda: it.database.read(run("SELECT 17"))  # noqa: E731 - said twice
        await ask()
        await ask()
        assert await it.database.read(run(names)) == [(1,)]
        time.now += 100
        await ask()
        assert await it.database.read(run(names)) == [(2,)]
