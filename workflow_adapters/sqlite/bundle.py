"""The bundle: the four ports and the operations over one database file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import aiosqlite

from workflow_adapters.ai_call_buffer import AICallBuffer
from workflow_adapters.ai_call_transaction import TransactionAICalls
from workflow_adapters.built_in import BuiltInAdapters, BuiltInTransaction
from workflow_adapters.clock import Clock, checked_clock
from workflow_adapters.errors import UsageError
from workflow_adapters.inputs.job_queue import JobQueueFairness, RetryBackoff
from workflow_adapters.options import Durability
from workflow_adapters.queue_settings import QueueSettings
from workflow_adapters.sql.ai_call_logger import SqlAICallLogger, insert_ai_calls
from workflow_adapters.sql.operations import SqlOperations
from workflow_adapters.sql.outbox_rotation import OutboxRotation
from workflow_adapters.sql.sqlalchemy_driver import driver_connection
from workflow_adapters.sql.step_ledger import SqlStepLedger
from workflow_adapters.sqlite.bound import open_bound
from workflow_adapters.sqlite.check import check_schema
from workflow_adapters.sqlite.database import ConnectedDatabase, Engine, SqliteDatabase
from workflow_adapters.sqlite.files import (
    DEFAULT_BUSY_TIMEOUT,
    DEFAULT_READERS,
    checked_readers,
    checked_target,
    throwaway_directory,
)
from workflow_adapters.sqlite.job_queue import SqliteJobQueue
from workflow_adapters.sqlite.job_signal import JobSignal
from workflow_adapters.sqlite.persistence import SqliteWorkflowPersistence
from workflow_adapters.sqlite.pool import PooledDatabase
from workflow_adapters.sqlite.schema import MIGRATIONS
from workflow_adapters.sqlite.schema.migration import migrate
from workflow_adapters.sqlite.schema.migration import plan as planned
from workflow_adapters.worker_id import WorkerId

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What the ports of a bundle share with those of its transactions."""

    queue: QueueSettings
    signal: JobSignal = field(default_factory=JobSignal)
    rotation: OutboxRotation = field(default_factory=OutboxRotation)


class _SqlitePorts:
    """The ports over one database, whose logged calls go to `calls`."""

    def __init__(self, database: SqliteDatabase, shared: _Shared, calls: AICallBuffer | TransactionAICalls) -> None:
        self._database = database
        self._shared = shared
        self._calls = calls
        self.persistence = SqliteWorkflowPersistence(database, shared.rotation)
        self.job_queue = SqliteJobQueue(database, shared.queue, shared.signal)
        self.step_ledger = SqlStepLedger(database)
        self.ai_call_logger = SqlAICallLogger(database, calls)
        self.operations = SqlOperations(database, shared.signal.changed)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[BuiltInTransaction]:
        async with self._on(self._database.transaction()) as tx:
            yield tx
        # Whoever was woken inside of the block has looked before the commit.
        self._shared.signal.changed()

    @asynccontextmanager
    async def _on(self, block: AbstractAsyncContextManager[ConnectedDatabase]) -> AsyncGenerator[SqliteTransaction]:
        """The bundle of a block."""
        calls = TransactionAICalls(self._database, self._calls)
        async with calls.block(), block as database:
            calls.opened(partial(insert_ai_calls, database))
            yield SqliteTransaction(database, self._shared, calls)
            await calls.flush()


class SqliteTransaction(_SqlitePorts):
    """The bundle of a transaction, of a savepoint, or over a caller's connection."""

    def __init__(self, database: ConnectedDatabase, shared: _Shared, calls: TransactionAICalls) -> None:
        super().__init__(database, shared, calls)
        self._connection = database.connection

    @property
    def connection(self) -> aiosqlite.Connection:
        return self._connection


class SqliteAdapters(_SqlitePorts):
    """An open bundle."""

    def bind(self, connection: object) -> AbstractAsyncContextManager[BuiltInTransaction]:
        return self._on(open_bound(self._database.engine, connection))

    @asynccontextmanager
    async def bind_sqlalchemy(
        self, session_or_connection: AsyncSession | AsyncConnection
    ) -> AsyncGenerator[BuiltInTransaction]:
        """`bind` on the aiosqlite connection that a SQLAlchemy session or connection uses.

        SQLAlchemy begins its transaction with its first statement, so one is run first. With sqlite3's own way of
        beginning transactions, which is SQLAlchemy's default, a statement that reads begins none: write first, or have
        SQLAlchemy say BEGIN itself, by the recipe in its documentation of SQLite. What it holds back until a flush is
        written when it flushes.
        """
        self._database.engine.check()
        async with self.bind(await driver_connection(session_or_connection, "aiosqlite")) as tx:
            yield tx

    async def migrate(self, *, plan: bool = False) -> list[str]:
        if plan:
            return await self._database.read(lambda: planned(MIGRATIONS))
        return await self._database.write(lambda: migrate(MIGRATIONS, self._database.now()))

    async def check_schema(self) -> None:
        await self._database.read(check_schema)


@asynccontextmanager
async def open_sqlite(
    path: str | os.PathLike[str] | None = None,
    *,
    clock: Clock | None = None,
    worker_id: str | None = None,
    fairness: JobQueueFairness | None = None,
    backoff: RetryBackoff | None = None,
    durability: Durability = "full",
    busy_timeout: timedelta = DEFAULT_BUSY_TIMEOUT,
    readers: int = DEFAULT_READERS,
) -> AsyncGenerator[BuiltInAdapters]:
    """Open a bundle on a database file; without a path on a private one, migrated and gone at close.

    `clock` makes every stamp. `worker_id` is what claims are stamped with; without it the host's, once adopted.
    `durability` "full" syncs the file at every commit; "normal" may lose the last commits when the power fails, never
    when the process dies, and never the consistency of the file. `busy_timeout` is how long a call waits for its turn,
    be the writer another task, another process or anybody with the file open, before it is a BackendBusyError.
    `readers` is how many connections read at once, at most.

    Any number of processes may have the file open, on one machine: the locks of SQLite do not work over a network.
    """
    _require_asyncio()
    target = checked_target(path, durability, busy_timeout)
    readers = checked_readers(readers)
    engine = Engine(checked_clock(clock))
    queue = QueueSettings(worker_id=WorkerId(worker_id), fairness=fairness, backoff=backoff or RetryBackoff())
    async with AsyncExitStack() as opened:
        if path is None:
            directory = await opened.enter_async_context(throwaway_directory())
            target = replace(target, path=str(directory / "throwaway.db"), synchronous="OFF")
        database = PooledDatabase(engine, target, readers=readers)
        await opened.enter_async_context(database.running())
        buffer = AICallBuffer(partial(insert_ai_calls, database), engine, flush_timeout=busy_timeout, one_writer=engine)
        adapters = SqliteAdapters(database, _Shared(queue=queue), buffer)
        if path is None:
            await adapters.migrate()
        await opened.enter_async_context(buffer.running())
        yield adapters


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError("a bundle on SQLite runs in an event loop of asyncio: aiosqlite knows no other") from error
