"""The `Database` of the shared operations on Postgres: on the pool, and inside a transaction."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Final, TypeVar

import anyio

from workflow_adapters.errors import BackendUnavailableError, TransactionConflictError, WorkflowAdapterError
from workflow_adapters.postgres.connection import Connection, is_lost, to_the_end
from workflow_adapters.postgres.detect import PostgresFacts
from workflow_adapters.postgres.engine import CURRENT, Engine
from workflow_adapters.postgres.errors import DEADLOCK, READ_ONLY, SERIALIZATION_FAILURE, is_stale_plan, sqlstate
from workflow_adapters.postgres.job_channel import JobSignals
from workflow_adapters.postgres.own_transaction import BEGIN, OwnTransaction, commit
from workflow_adapters.postgres.pool_port import Pool
from workflow_adapters.postgres.session import Session
from workflow_adapters.postgres.wake_ups import NextDue
from workflow_adapters.sql.dialect import Dialect
from workflow_adapters.sql.statement import Operation
from workflow_adapters.transaction_scope import TransactionScope
from workflow_adapters.validation import instant

T = TypeVar("T")

_CONFLICT_ATTEMPTS: Final = 20
_LONGEST_PAUSE: Final = 0.05


class PostgresDatabase(ABC):
    """What the ports have, beyond `Database`, on Postgres."""

    def __init__(self, engine: Engine, signals: JobSignals) -> None:
        self._engine = engine
        self._signals = signals

    @property
    def dialect(self) -> Dialect:
        return self._engine.dialect

    @property
    def known_facts(self) -> PostgresFacts:
        return self._engine.facts or CURRENT

    def now(self) -> datetime:
        return instant("clock", self._engine.settings.clock.now())

    def watch_plan(self, text: str) -> None:
        """Have a hot statement prepared anew when it has become slow (`workflow_adapters.postgres.plans`)."""
        self._engine.plans.watch(text)

    @abstractmethod
    async def facts(self) -> PostgresFacts: ...

    @abstractmethod
    async def read(self, operation: Callable[[], Operation[T]]) -> T: ...

    @abstractmethod
    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T: ...

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[TransactionDatabase]: ...

    @abstractmethod
    def jobs_changed(self) -> None:
        """Tell whoever waits for jobs, here and in other processes, once what was written is committed."""

    @abstractmethod
    def jobs_scheduled(self) -> None:
        """The same of jobs that are not due yet."""

    async def wait_for_jobs(self, timeout: float, next_due: NextDue) -> bool:
        """True as soon as a job may be due, False after `timeout` seconds. `next_due` looks at the queue."""
        self._engine.check()
        return await self._signals.wait(timeout, next_due)


class PooledDatabase(PostgresDatabase):
    """Each call on a connection of the pool, in a transaction of its own. `owner` is the bundle."""

    def __init__(self, engine: Engine, signals: JobSignals, pool: Pool, owner: object) -> None:
        super().__init__(engine, signals)
        self._pool = pool
        self._owner = owner

    async def facts(self) -> PostgresFacts:
        self._engine.check()
        return self._engine.facts or await self._attempts(self._look)

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        self._engine.check()
        return await self._attempts(lambda connection: self._run(connection, operation(), in_doubt=False))

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        self._engine.check()
        if single:
            return await self._attempts(lambda connection: self._run(connection, operation(), in_doubt=True))
        return await self._attempts(lambda connection: self._in_transaction(connection, operation()))

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[TransactionDatabase]:
        self._engine.check()
        transaction = await self._attempts(self._begin, keep=True)
        scope = TransactionScope(self._owner)
        try:
            async with scope.entered():
                yield TransactionDatabase(self._engine, self._signals, transaction.session, scope)
        except BaseException as error:
            await to_the_end(transaction.rollback())
            await self._leave_read_only(transaction.session.failure or error)
            raise
        await to_the_end(transaction.commit())
        if transaction.session.jobs_changed:
            self._signals.jobs_changed()

    def jobs_changed(self) -> None:
        self._signals.jobs_changed()

    def jobs_scheduled(self) -> None:
        self._signals.jobs_scheduled()

    async def _look(self, connection: Connection) -> PostgresFacts:
        return await self._engine.know_schema(connection, self._pool.limit)

    async def _run(self, connection: Connection, operation: Operation[T], *, in_doubt: bool) -> T:
        if self._engine.facts is None:
            await self._look(connection)
        return await self._engine.run(connection, operation, limit=self._pool.call_limit, in_doubt=in_doubt)

    async def _in_transaction(self, connection: Connection, operation: Operation[T]) -> T:
        await self._look(connection)
        limit = self._pool.call_limit
        await self._engine.execute(connection, BEGIN, limit)
        answer = await self._engine.run(connection, operation, limit=limit)
        await to_the_end(commit(connection, limit))
        return answer

    async def _begin(self, connection: Connection) -> OwnTransaction:
        return await OwnTransaction.begin(self._engine, connection, self._pool)

    async def _leave_read_only(self, error: BaseException) -> None:
        """After a failover the old connections lead to a server that may never take writes again."""
        if sqlstate(error) == READ_ONLY:
            await self._pool.invalidate()

    async def _attempts(self, work: Callable[[Connection], Awaitable[T]], *, keep: bool = False) -> T:
        """Do work that is over when it fails, again where the failure says that it may go well now.

        `keep`: the connection stays with the result.
        """
        attempt = 0
        while True:
            connection = await self._pool.acquire()
            try:
                result = await work(connection)
            except BaseException as error:
                lost = is_lost(connection)
                if not lost and _left_at_rest(error, connection):
                    await self._pool.release(connection)
                else:
                    await to_the_end(self._pool.recover(connection))
                await self._leave_read_only(error)
                pause = _pause_before_retry(error, attempt, lost=lost)
                if pause is None:
                    raise
            else:
                if keep:
                    self._pool.keep(connection)
                else:
                    await self._pool.release(connection)
                return result
            attempt += 1
            await anyio.sleep(pause)


class TransactionDatabase(PostgresDatabase):
    """Calls on one open transaction, ours or a caller's, or on a savepoint in it."""

    def __init__(self, engine: Engine, signals: JobSignals, session: Session, scope: TransactionScope) -> None:
        super().__init__(engine, signals)
        self.session = session
        self._scope = scope

    async def facts(self) -> PostgresFacts:
        if self._engine.facts is not None:
            return self._engine.facts
        async with self._scope.call():
            return await self.session.know_schema()

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        self._engine.check()
        async with self._scope.call():
            return await self.session.run(operation())

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        self._engine.check()
        async with self._scope.call():
            if single:
                return await self.session.run(operation())
            async with self.session.savepoint():
                return await self.session.run(operation())

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[TransactionDatabase]:
        self._engine.check()
        # Entered once more, the inner scope is at its end, with no call of it under way, before the savepoint is.
        async with self._scope.inner() as inner, self.session.savepoint(), inner.entered():
            yield TransactionDatabase(self._engine, self._signals, self.session, inner)

    def jobs_changed(self) -> None:
        self.session.jobs_changed = True

    def jobs_scheduled(self) -> None:
        self.session.jobs_changed = True


def _left_at_rest(error: BaseException, connection: Connection) -> bool:
    """Whether a call that failed has its answer from the server, and no transaction open."""
    answered = isinstance(error, WorkflowAdapterError) and not isinstance(error.__cause__, TimeoutError)
    return answered and not connection.is_in_transaction()


def _pause_before_retry(error: BaseException, attempt: int, *, lost: bool) -> float | None:
    """Seconds to wait before the work is done again; None where it is not."""
    if isinstance(error, TransactionConflictError) and attempt < _CONFLICT_ATTEMPTS:
        if sqlstate(error) in {SERIALIZATION_FAILURE, DEADLOCK}:
            return random.uniform(0, min(_LONGEST_PAUSE, 0.001 * 2**attempt))
        if is_stale_plan(error) and attempt == 0:
            return 0.0
    if isinstance(error, BackendUnavailableError) and lost and attempt == 0:
        # The server ended what was lying in the pool, of which we learn only now. Nothing was written.
        return 0.0
    return None
