"""A caller's own connection: what is asked of it, and how it is left."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
import pytest_asyncio

from tests.sqlite.support import ids, opened, put, put_and_fail, run, stored
from workflow_adapters import BackendBusyError, BackendError, ConfigurationError, NotFoundError, SchemaError, UsageError
from workflow_adapters.errors import TransactionConflictError
from workflow_adapters.sql.statement import Statement
from workflow_adapters.sqlite.bound import BoundDatabase, open_bound
from workflow_adapters.sqlite.pool import PooledDatabase

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def connection(path: Path, database: PooledDatabase) -> AsyncIterator[aiosqlite.Connection]:
    async with aiosqlite.connect(path, isolation_level=None, timeout=0) as connection:
        await connection.execute("PRAGMA foreign_keys = ON")
        yield connection


@asynccontextmanager
async def bound(database: PooledDatabase, connection: aiosqlite.Connection) -> AsyncIterator[BoundDatabase]:
    """Bound inside BEGIN and COMMIT of the caller."""
    await connection.execute("BEGIN")
    async with open_bound(database.engine, connection) as tx:
        yield tx
    await connection.execute("COMMIT")


async def test_it_is_part_of_the_callers_transaction(
    path: Path, database: PooledDatabase, connection: aiosqlite.Connection
) -> None:
    async with bound(database, connection) as tx:
        await connection.execute("INSERT INTO things VALUES ('business', '')")
        await tx.write(run(put("a")), single=True)
        await tx.write(run(put("b"), put("c")))
        assert await tx.read(ids) == ["a", "b", "business", "c"]
        assert stored(path) == []
    assert stored(path) == ["a", "b", "business", "c"]


async def test_the_callers_rollback_undoes_it(
    path: Path, database: PooledDatabase, connection: aiosqlite.Connection
) -> None:
    await connection.execute("BEGIN")
    async with open_bound(database.engine, connection) as tx:
        await tx.write(run(put("a")), single=True)
    assert connection.in_transaction
    await connection.execute("ROLLBACK")
    assert stored(path) == []


async def test_failures_and_savepoints_leave_the_callers_transaction_usable(
    path: Path, database: PooledDatabase, connection: aiosqlite.Connection
) -> None:
    async def failing_block(tx: BoundDatabase) -> None:
        async with tx.transaction() as inner, inner.transaction() as innermost:
            await innermost.write(run(put("undone")), single=True)
            raise ZeroDivisionError

    async with bound(database, connection) as tx:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(NotFoundError):
            await tx.write(put_and_fail("b"))
        with pytest.raises(BackendError) as refused:
            await tx.write(run(put("a")), single=True)
        assert isinstance(refused.value.__cause__, sqlite3.IntegrityError)
        with pytest.raises(ZeroDivisionError):
            await failing_block(tx)
        async with tx.transaction() as inner:
            await inner.write(run(put("c")), single=True)
            with pytest.raises(UsageError):
                await tx.write(run(put("from inside")), single=True)
    assert stored(path) == ["a", "c"]


class Odd:
    """What a row factory may give."""

    def __init__(self, cursor: sqlite3.Cursor, row: Any) -> None:
        self.row = row


def as_dict(cursor: sqlite3.Cursor, row: Any) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@pytest.mark.parametrize("row_factory", [None, sqlite3.Row, as_dict, Odd])
@pytest.mark.parametrize("text_factory", [str, bytes, lambda text: text.decode().upper()])
async def test_any_factories_do_and_stay(
    database: PooledDatabase, connection: aiosqlite.Connection, row_factory: Any, text_factory: Any
) -> None:
    connection.row_factory = row_factory
    connection.text_factory = text_factory
    settings = (connection.isolation_level, connection._conn.total_changes)
    async with bound(database, connection) as tx:
        await tx.write(run(put("a")), single=True)
        assert await tx.read(ids) == ["a"]
        assert (connection.row_factory, connection.text_factory) == (row_factory, text_factory)
        with pytest.raises(BackendError):
            await tx.write(run(put("a")), single=True)
        with pytest.raises(SchemaError):
            await tx.read(run("SELECT 1 FROM workflow_runs"))
    assert (connection.row_factory, connection.text_factory) == (row_factory, text_factory)
    assert (connection.isolation_level, connection._conn.total_changes) == (settings[0], settings[1] + 1)


async def test_no_open_transaction_is_refused(database: PooledDatabase, connection: aiosqlite.Connection) -> None:
    with pytest.raises(UsageError, match="BEGIN"):
        async with open_bound(database.engine, connection):
            pass


async def test_legacy_mode_has_no_transaction_before_the_first_write(path: Path, database: PooledDatabase) -> None:
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA foreign_keys = ON")
        await connection.execute("SELECT 1")
        with pytest.raises(UsageError, match="legacy mode"):
            async with open_bound(database.engine, connection):
                pass
        await connection.execute("INSERT INTO things VALUES ('business', '')")
        async with open_bound(database.engine, connection) as tx:
            await tx.write(run(put("a"), put("b")))
        await connection.commit()
    assert stored(path) == ["a", "b", "business"]


async def test_foreign_keys_off_is_refused(path: Path, database: PooledDatabase) -> None:
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        connection.row_factory = as_dict  # pyright: ignore[reportAttributeAccessIssue]  # the stub wants a type
        await connection.execute("BEGIN")
        with pytest.raises(ConfigurationError, match="foreign_keys"):
            async with open_bound(database.engine, connection):
                pass
        assert connection.in_transaction
        await connection.execute("ROLLBACK")


async def test_another_kind_of_connection_is_refused(path: Path, database: PooledDatabase) -> None:
    with sqlite3.connect(path) as connection, pytest.raises(ConfigurationError, match="not a Connection"):
        async with open_bound(database.engine, connection):
            pass
    connection.close()


async def test_a_connection_that_was_closed_or_ended_is_refused(path: Path, database: PooledDatabase) -> None:
    connection = await aiosqlite.connect(path, isolation_level=None)
    await connection.execute("PRAGMA foreign_keys = ON")
    await connection.execute("BEGIN")
    async with open_bound(database.engine, connection) as tx:
        await connection.execute("COMMIT")
        with pytest.raises(UsageError):
            await tx.write(run(put("a")), single=True)
        with pytest.raises(UsageError):
            async with tx.transaction():
                pass
        await connection.close()
        with pytest.raises(UsageError, match="closed"):
            await tx.read(ids)
    with pytest.raises(UsageError):
        async with open_bound(database.engine, connection):
            pass
    assert stored(path) == []


async def test_an_outer_write_from_inside_is_refused_at_once(
    database: PooledDatabase, connection: aiosqlite.Connection
) -> None:
    async with bound(database, connection) as tx:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(UsageError):
            await database.write(run(put("b")), single=True)
        assert await database.read(ids) == []
    with pytest.raises(UsageError):
        await tx.read(ids)


async def test_a_stale_snapshot_is_a_conflict_and_a_lock_is_busy(
    database: PooledDatabase, connection: aiosqlite.Connection
) -> None:
    await connection.execute("BEGIN")
    async with open_bound(database.engine, connection) as tx:
        await tx.read(ids)
        await asyncio.create_task(outside(database, "b"))
        with pytest.raises(TransactionConflictError):
            await tx.write(run(put("a")), single=True)
    await connection.execute("ROLLBACK")
    async with database.transaction():
        await connection.execute("BEGIN")
        async with open_bound(database.engine, connection) as tx:
            with pytest.raises(BackendBusyError):
                await tx.write(run(put("a")), single=True)
        await connection.execute("ROLLBACK")


async def outside(database: PooledDatabase, id: str) -> None:
    from workflow_adapters.transaction_scope import leave_transactions

    leave_transactions()
    await database.write(run(put(id)), single=True)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancelled_operation_is_not_left_half_done(
    path: Path, database: PooledDatabase, connection: aiosqlite.Connection, times: int
) -> None:
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    async with bound(database, connection) as tx:
        statements = [Statement("INSERT INTO things VALUES ($1, '')", (str(n),)) for n in range(5)]

        def operation() -> Any:
            for n, statement in enumerate(statements):
                if n == 2:
                    loop.call_soon(reached.set)
                yield statement

        writing = asyncio.create_task(tx.write(operation))
        await reached.wait()
        for _ in range(times):
            writing.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([writing])
        assert writing.cancelled()
        assert await tx.read(ids) == ["0", "1", "2", "3", "4"]
    assert stored(path) == ["0", "1", "2", "3", "4"]


async def test_it_is_checked_like_the_pool(path: Path) -> None:
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await connection.execute("PRAGMA foreign_keys = ON")
        async with opened(path) as database:
            await connection.execute("BEGIN")
            async with open_bound(database.engine, connection) as tx:
                await database.close()
                with pytest.raises(UsageError, match="closed"):
                    await tx.read(ids)
        await connection.execute("ROLLBACK")
