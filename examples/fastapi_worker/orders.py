"""The service's own table: written on the connection of the workflow's transaction, read on connections of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, LiteralString, Protocol

import aiosqlite
import asyncpg

from workflow_adapters import TransactionAdapters

CREATE: LiteralString = """
    CREATE TABLE IF NOT EXISTS orders (
        id TEXT PRIMARY KEY,
        item TEXT NOT NULL,
        quantity INTEGER NOT NULL,
        charged INTEGER NOT NULL DEFAULT 0
    )
"""


class Orders(Protocol):
    """Writes business rows over whatever connection the transaction has."""

    async def create_table(self) -> None: ...
    async def insert(self, order_id: str, item: str, quantity: int) -> None: ...
    async def charge(self, order_id: str) -> None: ...


def orders(tx: TransactionAdapters) -> Orders:
    """The table over aiosqlite or asyncpg, by the connection of `tx`."""
    connection = tx.connection
    if type(connection).__module__.startswith("aiosqlite"):
        return SqliteOrders(connection)
    return PostgresOrders(connection)


class SqliteOrders:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def create_table(self) -> None:
        await self._connection.execute(CREATE)

    async def insert(self, order_id: str, item: str, quantity: int) -> None:
        await self._connection.execute(
            "INSERT INTO orders (id, item, quantity) VALUES (?, ?, ?)", (order_id, item, quantity)
        )

    async def charge(self, order_id: str) -> None:
        await self._connection.execute("UPDATE orders SET charged = charged + 1 WHERE id = ?", (order_id,))


class PostgresOrders:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def create_table(self) -> None:
        await self._connection.execute(CREATE)

    async def insert(self, order_id: str, item: str, quantity: int) -> None:
        await self._connection.execute(
            "INSERT INTO orders (id, item, quantity) VALUES ($1, $2, $3)", order_id, item, quantity
        )

    async def charge(self, order_id: str) -> None:
        await self._connection.execute("UPDATE orders SET charged = charged + 1 WHERE id = $1", order_id)


class OrderReader(Protocol):
    """Reads business rows.

    Not in a transaction of the bundle: that one is for writing, and on SQLite one writer has its turn at a time.
    """

    async def times_charged(self, order_id: str) -> int: ...


@asynccontextmanager
async def open_order_reader(url: str) -> AsyncGenerator[OrderReader]:
    """The table read over a connection to the file, or a small pool."""
    if url.startswith("sqlite:///"):
        async with aiosqlite.connect(url.removeprefix("sqlite:///")) as connection:
            yield SqliteOrderReader(connection)
    else:
        async with asyncpg.create_pool(url, min_size=0, max_size=4) as pool:
            yield PostgresOrderReader(pool)


class SqliteOrderReader:
    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def times_charged(self, order_id: str) -> int:
        rows = await self._connection.execute_fetchall("SELECT charged FROM orders WHERE id = ?", (order_id,))
        return next(iter(rows))[0]


class PostgresOrderReader:
    def __init__(self, pool: asyncpg.Pool[Any]) -> None:
        self._pool = pool

    async def times_charged(self, order_id: str) -> int:
        return await self._pool.fetchval("SELECT charged FROM orders WHERE id = $1", order_id)
