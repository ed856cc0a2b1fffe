"""A table of things, and operations on it: the engine without the ports."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiosqlite

from workflow_adapters.clock import SystemClock
from workflow_adapters.errors import NotFoundError
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sqlite.connection import Synchronous, Target
from workflow_adapters.sqlite.database import Engine
from workflow_adapters.sqlite.pool import PooledDatabase

THINGS = "CREATE TABLE IF NOT EXISTS things (id TEXT PRIMARY KEY, value TEXT) STRICT"


@asynccontextmanager
async def opened(
    path: Path, *, busy_timeout: float = 5.0, readers: int = 2, synchronous: Synchronous = "OFF"
) -> AsyncIterator[PooledDatabase]:
    """A pool on a file that has the table of things. Power cuts are no subject of these tests, so nothing is synced."""
    target = Target(path=str(path), busy_timeout=busy_timeout, synchronous=synchronous)
    database = PooledDatabase(Engine(SystemClock()), target, readers=readers)
    await database.open()
    try:
        await database.write(run(THINGS))
        yield database
    finally:
        await database.close()


def run(*statements: Any) -> Callable[[], Operation[None]]:
    """An operation of these statements."""

    def operation() -> Operation[None]:
        for statement in statements:
            yield statement if isinstance(statement, Statement) else Statement(statement)

    return operation


def put(id: str, value: str = "") -> Statement:
    return Statement("INSERT INTO things (id, value) VALUES ($1, $2)", (id, value))


def put_and_fail(id: str) -> Callable[[], Operation[None]]:
    """Two writes, and an error of ours after them."""

    def operation() -> Operation[None]:
        yield put(id)
        yield put(f"{id}+")
        raise NotFoundError("artifact", id)

    return operation


def ids() -> Operation[list[str]]:
    rows = yield Statement("SELECT id FROM things ORDER BY id")
    return [str(row[0]) for row in rows]


def stored(path: Path) -> list[str]:
    """The ids in the file, read by somebody else."""
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM things ORDER BY id")]


def connection_threads() -> list[threading.Thread]:
    # Until aiosqlite 0.21 a connection was its thread.
    return [
        thread
        for thread in threading.enumerate()
        if isinstance(thread, aiosqlite.Connection) or "connection_worker" in thread.name
    ]


def threads_left() -> list[threading.Thread]:
    """Threads of connections that do not come to their end; the last act of one is to say that it is closed."""
    threads = connection_threads()
    for thread in threads:
        thread.join(1)
    return [thread for thread in threads if thread.is_alive()]


class Lock:
    """Somebody else who holds the write lock of the file."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def take(self) -> Lock:
        self._connection.execute("BEGIN IMMEDIATE")
        return self

    def release(self) -> None:
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
