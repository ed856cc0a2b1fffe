"""The bundle: the four ports and the operations over one pool, one transaction, or a caller's connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import asyncpg

from workflow_adapters.ai_call_buffer import AICallBuffer
from workflow_adapters.ai_call_transaction import TransactionAICalls
from workflow_adapters.built_in import BuiltInTransaction
from workflow_adapters.clock import checked_clock
from workflow_adapters.errors import ConfigurationError
from workflow_adapters.inputs.job_queue import RetryBackoff
from workflow_adapters.options import PostgresOptions
from workflow_adapters.postgres.bound import open_transaction_on
from workflow_adapters.postgres.check import check_schema
from workflow_adapters.postgres.connect import MIGRATING
from workflow_adapters.postgres.connection import Connection
from workflow_adapters.postgres.database import PostgresDatabase, TransactionDatabase
from workflow_adapters.postgres.home import Home
from workflow_adapters.postgres.job_channel import JobSignals, ListenerState
from workflow_adapters.postgres.job_port import PostgresQueueSettings
from workflow_adapters.postgres.job_queue import PostgresJobQueue
from workflow_adapters.postgres.migrate import POOLED, Migrator, translating
from workflow_adapters.postgres.options import PostgresSettings
from workflow_adapters.postgres.pool_port import PoolStats
from workflow_adapters.postgres.workflow_persistence import PostgresWorkflowPersistence
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.sql.ai_call_logger import SqlAICallLogger, insert_ai_calls
from workflow_adapters.sql.operations import SqlOperations
from workflow_adapters.sql.outbox_rotation import OutboxRotation
from workflow_adapters.sql.sqlalchemy_driver import driver_connection
from workflow_adapters.sql.step_ledger import SqlStepLedger
from workflow_adapters.worker_id import WorkerId

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the ports of one bundle share, in transactions and out of them."""

    home: Home
    signals: JobSignals
    queue: PostgresQueueSettings
    rotation: OutboxRotation


class _PostgresPorts:
    """The ports over one database, whose logged calls go to `calls`."""

    def __init__(self, database: PostgresDatabase, shared: _Shared, calls: AICallBuffer | TransactionAICalls) -> None:
        self._database = database
        self._shared = shared
        self._calls = calls
        self.persistence = PostgresWorkflowPersistence(database, shared.rotation)
        self.job_queue = PostgresJobQueue(database, shared.queue)
        self.step_ledger = SqlStepLedger(database)
        self.ai_call_logger = SqlAICallLogger(database, calls)
        self.operations = SqlOperations(database, database.jobs_changed)

    def transaction(self) -> AbstractAsyncContextManager[BuiltInTransaction]:
        return self._in(self._database.transaction())

    @asynccontextmanager
    async def _in(
        self, transaction: AbstractAsyncContextManager[TransactionDatabase]
    ) -> AsyncGenerator[BuiltInTransaction]:
        calls = TransactionAICalls(self._shared.home.settings.clock, self._calls)
        async with calls.block(), transaction as database:
            calls.opened(partial(_insert_apart, database))
            yield PostgresTransaction(database, self._shared, calls)
            await calls.flush()


class PostgresTransaction(_PostgresPorts):
    """The bundle of a transaction or savepoint, ours or a caller's."""

    _database: TransactionDatabase

    @property
    def connection(self) -> Connection:
        return self._database.session.connection


class PostgresAdapters(_PostgresPorts):
    """An open bundle."""

    def bind(self, connection: object) -> AbstractAsyncContextManager[BuiltInTransaction]:
        """`connection` is an asyncpg connection, or a pool's proxy for one."""
        shared = self._shared
        return self._in(open_transaction_on(shared.home.engine, shared.signals, connection, shared.home))

    @asynccontextmanager
    async def bind_sqlalchemy(
        self, session_or_connection: AsyncSession | AsyncConnection
    ) -> AsyncGenerator[BuiltInTransaction]:
        """`bind` on the asyncpg connection that a SQLAlchemy session or connection uses.

        SQLAlchemy begins its transaction with its first statement, so one is run first. What it holds back until a
        flush is written when it flushes.
        """
        self._shared.home.engine.check()
        async with self.bind(await driver_connection(session_or_connection, "asyncpg")) as tx:
            yield tx

    async def migrate(self, *, plan: bool = False) -> list[str]:
        """Bring the schema to the current version, and return the SQL that was run; with `plan`, that would be run.

        Nothing is done to a schema that the TypeScript engine's tooling made, or that is current. Needs a direct
        connection: through a pooler such as PgBouncer it is a ConfigurationError.
        """
        home = self._shared.home
        home.engine.check()
        if home.settings.pgbouncer and not plan:
            raise ConfigurationError(POOLED)
        async with home.connection(MIGRATING) as connection:
            migrator = Migrator(connection, home.settings, lambda text: home.engine.style.render(text).text)
            done = await (migrator.plan() if plan else migrator.run())
        home.engine.forget_schema()
        return done

    async def check_schema(self) -> None:
        home = self._shared.home
        home.engine.check()
        async with home.pooled() as connection, translating(connection):
            await check_schema(connection, home.settings.schema, home.settings.status_enum, home.pool.limit)

    @property
    def pool_stats(self) -> PoolStats:
        """Connections in use and idle, and calls that wait for one."""
        return self._shared.home.pool.stats

    @property
    def listener_state(self) -> ListenerState:
        """Whether new jobs of other processes are learnt of by LISTEN at the moment."""
        return self._shared.signals.state


@asynccontextmanager
async def open_postgres(
    dsn_or_pool: str | asyncpg.Pool[Any], **options: Unpack[PostgresOptions]
) -> AsyncGenerator[PostgresAdapters]:
    """Open a bundle on Postgres, by DSN or over an `asyncpg.Pool`, which is not closed.

    Nothing is connected to before the first call. The options and their defaults are those of `PostgresSettings`; what
    makes no sense is a ConfigurationError.
    """
    home = Home(dsn_or_pool, _settings(options))
    settings = home.settings
    async with home.open() as (database, signals):
        queue = PostgresQueueSettings(
            worker_id=WorkerId(settings.worker_id), fairness=settings.fairness, backoff=settings.backoff
        )
        buffer = AICallBuffer(partial(insert_ai_calls, database), settings.clock)
        async with buffer.running():
            yield PostgresAdapters(database, _Shared(home, signals, queue, OutboxRotation()), buffer)


def _settings(options: PostgresOptions) -> PostgresSettings:
    clock, backoff = checked_clock(options.get("clock")), options.get("backoff") or RetryBackoff()
    chosen: dict[str, Any] = {**options, "clock": clock, "backoff": backoff}
    return PostgresSettings(**chosen)


async def _insert_apart(database: TransactionDatabase, calls: Sequence[AICallRecord]) -> None:
    """Store calls so that one which the server refuses does not cost the transaction."""
    async with database.transaction() as savepoint:
        await insert_ai_calls(savepoint, calls)
