"""The service's own table, written on the connection of the workflow's transaction."""

from __future__ import annotations

from typing import Any, LiteralString, Protocol

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
    """Business rows over whatever connection the transaction has."""

    async def create_table(self) -> None: ...
    async def insert(self, order_id: str, item: str, quantity: int) -> None: ...
    async def charge(self, order_id: str) -> None: ...
    async def times_charged(self, order_id: str) -> int: ...


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

    async def times_charged(self, order_id: str) -> int:
        rows = await self._connection.execute_fetchall("SELECT charged FROM orders WHERE id = ?", (order_id,))
        return next(iter(rows))[0]


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

    async def times_charged(self, order_id: str) -> int:
        return await self._connection.fetchval("SELECT charged FROM orders WHERE id = $1", order_id)
