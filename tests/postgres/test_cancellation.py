"""A cancel of either kind, once and twice, at every point where a call can be suspended."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from tests.cancellation.driver import Mode, cancel_at, cancel_everywhere
from tests.postgres.support import Opened, opened, put, query, run, script, until
from workflow_adapters.postgres.pool import ConnectionPool

pytestmark = pytest.mark.asyncio

IDLE = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'workflow_%' AND state <> 'idle'
"""


@pytest_asyncio.fixture
async def things(dsn: str) -> str:
    """Without a key, so that a write that was made twice shows."""
    await script(dsn, "CREATE TABLE things (id text)")
    return dsn


async def single(it: Opened) -> None:
    await it.database.write(run(put("a")), single=True)


async def several(it: Opened) -> None:
    await it.database.write(run(put("a"), put("b")))


async def transaction(it: Opened) -> None:
    async with it.database.transaction() as tx:
        await tx.write(run(put("a")), single=True)
        await tx.write(run(put("b"), put("c")))


async def nested(it: Opened) -> None:
    async with it.database.transaction() as tx, tx.transaction() as inner:
        await inner.write(run(put("a")), single=True)


async def at_rest(dsn: str) -> bool:
    [[busy]] = await query(dsn, IDLE)
    return busy == 0


@pytest.mark.parametrize("call", [single, several, transaction, nested])
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
async def test_all_or_nothing_and_nothing_leaks(
    things: str, call: Callable[[Opened], Awaitable[None]], warm: bool
) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    async with opened(things, max_connections=1) as it:

        async def attempt(n: int, mode: Mode) -> bool:
            pool = it.home.pool
            assert isinstance(pool, ConnectionPool)
            await it.database.write(run("TRUNCATE things"), single=True)
            if not warm:
                await pool.invalidate()
                it.home.engine.forget_schema()
            tasks = asyncio.all_tasks()
            reached = await cancel_at(lambda: call(it), n, mode)
            assert asyncio.all_tasks() == tasks, "tasks were left running"
            assert pool.stats.in_use == 0
            await until(lambda: at_rest(things))
            rows = await it.database.read(run("SELECT id FROM things ORDER BY id"))
            assert [row[0] for row in rows] in ([], everything_of(call))
            return reached

        points = await cancel_everywhere(attempt)
    gc.collect()
    assert complaints == []
    assert min(points.values()) >= (1 if warm else 5)


def everything_of(call: Callable[[Opened], Awaitable[None]]) -> list[str]:
    wholes: dict[object, list[str]] = {
        single: ["a"],
        several: ["a", "b"],
        transaction: ["a", "b", "c"],
        nested: ["a"],
    }
    return wholes[call]


async def test_a_cancel_while_waiting_for_a_connection_costs_no_slot(things: str) -> None:
    async with opened(things, max_connections=1) as it:

        async def attempt(n: int, mode: Mode) -> bool:
            holder = asyncio.create_task(it.database.read(run("SELECT pg_sleep(0.02)")))
            await asyncio.sleep(0)
            reached = await cancel_at(lambda: single(it), n, mode)
            await holder
            assert it.home.pool.stats == (0, 1, 0)
            return reached

        points = await cancel_everywhere(attempt)
    assert min(points.values()) >= 2


async def test_a_cancelled_statement_does_not_go_on_in_the_server(things: str) -> None:
    async with opened(things) as it:
        blocked = asyncio.create_task(it.database.write(run("SELECT pg_sleep(60)", put("a")), single=True))
        await until(lambda: runs(things, "pg_sleep"))
        blocked.cancel()
        await asyncio.wait([blocked])
        assert blocked.cancelled()
        assert not await runs(things, "pg_sleep")
        assert await it.database.read(run("SELECT id FROM things")) == []


async def runs(dsn: str, part: str) -> bool:
    rows = await query(
        dsn,
        """
        SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
          AND query LIKE '%' || $1::text || '%'
        """,
        part,
    )
    return bool(rows)
