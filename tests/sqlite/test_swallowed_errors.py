"""Errors that a caller swallows after SQLite undid the caller's transaction: nothing passes for stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import aiosqlite
import pytest

from tests.sqlite.support import put, run, stored
from workflow_adapters import BackendUnavailableError, TransactionConflictError
from workflow_adapters.sqlite.bound import BoundDatabase, open_bound
from workflow_adapters.sqlite.pool import PooledDatabase

pytestmark = pytest.mark.asyncio

Work: TypeAlias = Callable[[BoundDatabase], Awaitable[None]]


async def fill_up(tx: BoundDatabase) -> None:
    await tx.write(run(put("b")), single=True)
    with pytest.raises(BackendUnavailableError):
        await tx.write(run(put("large", "x" * 200_000)), single=True)
    with pytest.raises(TransactionConflictError):
        await tx.write(run(put("c")), single=True)


async def fill_up_in_a_savepoint(tx: BoundDatabase) -> None:
    with pytest.raises(TransactionConflictError):
        async with tx.transaction() as inner:
            await fill_up(inner)


@pytest.mark.parametrize("work", [fill_up, fill_up_in_a_savepoint])
async def test_the_block_of_bind_does_not_end_well(path: Path, database: PooledDatabase, work: Work) -> None:
    """aiosqlite's commit() says nothing where no transaction is open."""
    async with aiosqlite.connect(path, isolation_level=None, timeout=0) as connection:
        await connection.execute("PRAGMA foreign_keys = ON")
        await connection.execute("PRAGMA max_page_count = 20")
        await connection.execute("BEGIN")
        with pytest.raises(TransactionConflictError) as ended:
            await bound(database, connection, work)
        assert isinstance(ended.value.__cause__, BackendUnavailableError)
        await connection.commit()
    assert stored(path) == []


async def bound(database: PooledDatabase, connection: aiosqlite.Connection, work: Work) -> None:
    async with open_bound(database.engine, connection) as tx:
        await tx.write(run(put("a")), single=True)
        await work(tx)
