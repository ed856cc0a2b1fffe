"""What an open bundle holds besides its ports: the pool, the engine, the background tasks, and their closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, cast

import anyio
import asyncpg
from anyio.abc import TaskGroup

from workflow_adapters.errors import ConfigurationError, UsageError
from workflow_adapters.lifecycle import Lifecycle
from workflow_adapters.postgres.borrowed_pool import BorrowedPool
from workflow_adapters.postgres.connect import LISTENING, Connector, Purpose
from workflow_adapters.postgres.connection import Connection, discard, to_the_end
from workflow_adapters.postgres.database import PooledDatabase
from workflow_adapters.postgres.dialect import PostgresDialect
from workflow_adapters.postgres.engine import Engine
from workflow_adapters.postgres.job_channel import JobChannel, JobSignals, ListeningConnection
from workflow_adapters.postgres.options import PostgresSettings
from workflow_adapters.postgres.pool import ConnectionPool
from workflow_adapters.postgres.pool_port import Pool
from workflow_adapters.postgres.wake_ups import WakeUps

# The server's limit is to be met first: it says for certain that nothing was written.
_GRACE: Final = timedelta(seconds=5)
# The least size of a caller's pool that can spare a connection for LISTEN.
_SPARES_ONE: Final = 3


class Home:
    """One bundle's resources, in one event loop."""

    def __init__(self, target: str | asyncpg.Pool[Any], settings: PostgresSettings) -> None:
        self.settings = settings
        self.lifecycle = Lifecycle("this bundle")
        self.engine = Engine(settings, self.lifecycle, PostgresDialect())
        self._connector = Connector(target, settings) if isinstance(target, str) else None
        self.pool: Pool = _pool(target, self._connector, settings)
        can_listen = isinstance(target, str) or target.get_max_size() >= _SPARES_ONE
        self._listens = settings.listens and can_listen
        self._wake_ups = WakeUps(settings.poll_interval.total_seconds())

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[PooledDatabase, JobSignals]]:
        """The database and what tells of jobs, until the end of the block.

        Calls that are still running then have `close_timeout` to come to theirs.
        """
        _require_asyncio()
        self.lifecycle.open()
        try:
            async with _background() as tasks:
                channel = self._channel(tasks)
                signals = JobSignals(self._wake_ups, channel)
                try:
                    yield PooledDatabase(self.engine, signals, self.pool, self), signals
                finally:
                    if channel is not None:
                        await to_the_end(channel.close())
        finally:
            self.lifecycle.close()
            await to_the_end(self.pool.close(self.settings.close_timeout.total_seconds()))

    @asynccontextmanager
    async def connection(self, purpose: Purpose) -> AsyncGenerator[Connection]:
        """A connection for something that lasts: of its own, or else of the caller's pool."""
        if self._connector is None:
            async with self.pooled() as connection:
                yield connection
            return
        connection = await self._connector(purpose)
        try:
            yield connection
        finally:
            connection.terminate()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[ListeningConnection]:
        async with self.connection(LISTENING) as connection:
            try:
                yield cast("ListeningConnection", connection)
            finally:
                # A pool must not get it back while it listens.
                discard(connection)

    @asynccontextmanager
    async def pooled(self) -> AsyncGenerator[Connection]:
        connection = await self.pool.acquire()
        self.pool.keep(connection)
        try:
            yield connection
        except BaseException:
            await to_the_end(self.pool.recover(connection))
            raise
        await self.pool.release(connection)

    def _channel(self, tasks: TaskGroup) -> JobChannel | None:
        if not self._listens:
            return None
        return JobChannel(self.settings.schema, self._wake_ups, self, tasks)


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError("a bundle on Postgres runs in an event loop of asyncio: asyncpg knows no other") from error


@asynccontextmanager
async def _background() -> AsyncGenerator[TaskGroup]:
    """Tasks that end with the block. What the block raises comes out as it is, not in a group."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except BaseException as error:  # noqa: BLE001 - raised below
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _pool(target: str | asyncpg.Pool[Any], connector: Connector | None, settings: PostgresSettings) -> Pool:
    acquire_timeout = settings.acquire_timeout.total_seconds()
    if connector is None:
        if not isinstance(target, asyncpg.Pool):
            raise ConfigurationError(f"open_postgres takes a DSN or an asyncpg.Pool, not {type(target).__name__}")
        return BorrowedPool(target, limit=settings.statement_timeout.total_seconds(), acquire_timeout=acquire_timeout)
    limit = settings.statement_timeout + (timedelta(0) if settings.pgbouncer else _GRACE)
    idle_limit = None if settings.pgbouncer else settings.idle_in_transaction_timeout.total_seconds()
    return ConnectionPool(
        connector,
        size=settings.max_connections,
        limit=limit.total_seconds(),
        idle_limit=idle_limit,
        acquire_timeout=acquire_timeout,
        max_idle=settings.max_idle.total_seconds(),
    )
