"""The engine without the bundle, and what a test needs to look at the server from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from workflow_adapters import CreateRunInput
from workflow_adapters.errors import NotFoundError
from workflow_adapters.postgres.connect import MIGRATING
from workflow_adapters.postgres.database import PooledDatabase
from workflow_adapters.postgres.home import Home
from workflow_adapters.postgres.migrate import Migrator
from workflow_adapters.postgres.options import PostgresSettings
from workflow_adapters.sql.persistence import SqlWorkflowPersistence
from workflow_adapters.sql.statement import Operation, Statement

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Opened:
    home: Home
    database: PooledDatabase
    persistence: SqlWorkflowPersistence


@asynccontextmanager
async def opened(target: Any, **options: Any) -> AsyncIterator[Opened]:
    home = Home(target, PostgresSettings(**options))
    async with home.open() as (database, _):
        yield Opened(home, database, SqlWorkflowPersistence(database))


async def migrated(dsn: str, *, plan: bool = False, **options: Any) -> list[str]:
    async with opened(dsn, **options) as it, it.home.connection(MIGRATING) as connection:
        migrator = Migrator(connection, it.home.settings, lambda text: it.home.engine.style.render(text).text)
        return await (migrator.plan() if plan else migrator.run())


async def query(dsn: str, statement: str, *args: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(statement, *args)
    finally:
        await connection.close(timeout=10)


async def script(dsn: str, statements: str) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"default_transaction_read_only": "off"})
    try:
        await connection.execute(statements)
    finally:
        await connection.close(timeout=10)


def a_run(id: str | None = None) -> CreateRunInput:
    return CreateRunInput(id=id, workflow_id="order", workflow_name="Order", workflow_type="sale", input={"n": 1})


def run(*statements: str) -> Callable[[], Operation[list[Any]]]:
    """An operation of these statements, that answers with the rows of the last."""

    def operation() -> Operation[list[Any]]:
        rows: list[Any] = []
        for statement in statements:
            rows = list((yield Statement(statement)))  # pyright: ignore[reportArgumentType]  # a test writes its own SQL
        return rows

    return operation


def run_and_fail(*statements: str) -> Callable[[], Operation[None]]:
    """The same, and an error of ours after them."""

    def operation() -> Operation[None]:
        yield from run(*statements)()
        raise NotFoundError("step", "it")

    return operation


async def inside(block: AbstractAsyncContextManager[T], work: Callable[[T], Awaitable[R]]) -> R:
    """What `work` gives on what the block yields."""
    async with block as it:
        return await work(it)


def at(dsn: str, host: str, port: int) -> str:
    """The same database by way of another address."""
    parts = urlsplit(dsn)
    user = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@{host}:{port}"))


async def backends(dsn: str) -> list[int]:
    """The server processes of our own connections."""
    rows = await query(
        dsn,
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'workflow_%'",
    )
    return [row[0] for row in rows]


# Of this database: other tests run on the same server.
ASLEEP = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"


async def is_asleep(dsn: str) -> bool:
    """Whether a backend is in pg_sleep()."""
    return bool(await query(dsn, f"SELECT 1 {ASLEEP}"))


async def end_backends(dsn: str) -> None:
    """Terminate our connections, and wait until they are gone."""
    await query(
        dsn,
        """
        SELECT pg_terminate_backend(pid, 5000)
        FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'workflow_%'
        """,
    )


async def until(condition: Callable[[], Any], seconds: float = 10) -> None:
    """Wait for what another task or process is about to do."""
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.005)


def put(id: str) -> str:
    """A row of the fixture `things`."""
    return f"INSERT INTO things (id) VALUES ('{id}')"


async def ids(dsn: str) -> list[str]:
    return [row[0] for row in await query(dsn, "SELECT id FROM things ORDER BY id")]
