"""The bundle inside a transaction of SQLAlchemy's."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from workflow_adapters import ConfigurationError, CreateRunInput, UsageError, open_sqlite
from workflow_adapters.sqlite.bundle import SqliteAdapters

pytestmark = pytest.mark.asyncio


def named(run_id: str) -> CreateRunInput:
    return CreateRunInput(id=run_id, workflow_id="w", workflow_name="n", workflow_type="t", input=None)


@asynccontextmanager
async def opened(path: Path, *, says_begin: bool, foreign_keys: bool = True) -> AsyncIterator[Any]:
    """Adapters, and an engine of SQLAlchemy on the same file with a table of orders."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    _set_up(engine, says_begin=says_begin, foreign_keys=foreign_keys)
    async with open_sqlite(path) as adapters:
        assert isinstance(adapters, SqliteAdapters)
        await adapters.migrate()
        async with engine.begin() as connection:
            await connection.execute(text("CREATE TABLE orders (id TEXT) STRICT"))
        yield adapters, engine
        await engine.dispose()


def _set_up(engine: AsyncEngine, *, says_begin: bool, foreign_keys: bool) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def on_connect(connection: Any, _: object) -> None:
        if says_begin:
            connection.isolation_level = None
        if foreign_keys:
            cursor = connection.cursor()
            cursor.execute("PRAGMA foreign_keys = ON")
            cursor.close()

    if says_begin:

        @event.listens_for(engine.sync_engine, "begin")
        def on_begin(connection: Any) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")


def stored(path: Path) -> tuple[list[Any], list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        orders = connection.execute("SELECT id FROM orders").fetchall()
        return orders, connection.execute("SELECT id FROM workflow_runs").fetchall()


async def test_a_session_and_a_connection(path: Path) -> None:
    async with opened(path, says_begin=True) as (adapters, engine):
        async with AsyncSession(engine) as session, session.begin():
            # Nothing has run yet: SQLAlchemy has begun nothing.
            async with adapters.bind_sqlalchemy(session) as tx:
                await tx.persistence.create_run(named("r"))
                async with tx.transaction() as inner:
                    await inner.persistence.create_run(named("s"))
            await session.execute(text("INSERT INTO orders VALUES ('o')"))
        async with engine.connect() as connection:
            async with adapters.bind_sqlalchemy(connection) as tx:
                await tx.persistence.create_run(named("undone"))
            await connection.rollback()
    assert stored(path) == ([("o",)], [("r",), ("s",)])


async def test_with_sqlite3s_own_transactions_a_write_comes_first(path: Path) -> None:
    async with opened(path, says_begin=False) as (adapters, engine), AsyncSession(engine) as session, session.begin():
        with pytest.raises(UsageError, match="legacy mode"):
            async with adapters.bind_sqlalchemy(session):
                pass
        await session.execute(text("INSERT INTO orders VALUES ('o')"))
        async with adapters.bind_sqlalchemy(session) as tx:
            await tx.persistence.create_run(named("r"))
    assert stored(path) == ([("o",)], [("r",)])


async def test_what_it_can_not_take_is_refused(path: Path) -> None:
    async with opened(path, says_begin=True, foreign_keys=False) as (adapters, engine), engine.begin() as connection:
        with pytest.raises(ConfigurationError, match="foreign_keys"):
            async with adapters.bind_sqlalchemy(connection):
                pass
        with pytest.raises(ConfigurationError, match="not str"):
            async with adapters.bind_sqlalchemy("session"):
                pass
        with pytest.raises(ConfigurationError, match="bind_sqlalchemy"):
            async with adapters.bind(connection):
                pass
