"""A connection inside a transaction: one statement at a time, savepoints, and an end that cannot be interrupted."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from copy import copy
from typing import Final, TypeVar

import asyncpg

from workflow_adapters.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    SchemaError,
    TransactionConflictError,
    UsageError,
    WorkflowAdapterError,
)
from workflow_adapters.postgres.connection import Connection, is_lost, to_the_end
from workflow_adapters.postgres.detect import PostgresFacts
from workflow_adapters.postgres.engine import Engine
from workflow_adapters.postgres.errors import ABORTED, InFlight, in_transaction, sqlstate, translated
from workflow_adapters.sql.statement import Operation
from workflow_adapters.transaction_scope import Turn

T = TypeVar("T")

_ENDED: Final = (
    "the transaction was ended by a COMMIT or ROLLBACK on its .connection, but it is the block's to end: leave the"
    " block, or raise in it"
)
_UNDONE: Final = "an earlier statement of this block failed, so all of the block was rolled back"


class Session:
    """An open transaction on a connection, whoever began it.

    `limit` is the client's on each statement, `idle_limit` the server's on the time between two, in seconds.
    """

    def __init__(
        self, engine: Engine, connection: Connection, *, limit: float | None, idle_limit: float | None = None
    ) -> None:
        self._engine = engine
        self._connection = connection
        self._limit = limit
        self._idle_limit = idle_limit
        self._used = time.monotonic()
        self._turn = Turn()
        self._savepoints = itertools.count(1)
        self.failure: BaseException | None = None
        self.handed_out = False
        self.jobs_changed = False

    @property
    def connection(self) -> Connection:
        """The driver's connection, for the caller's own statements."""
        self.handed_out = True
        return self._connection

    def require_transaction(self) -> None:
        """UsageError where whoever was given the connection has ended the transaction by it.

        What follows would be stored at once, and a failure of the block would undo nothing of it.
        """
        if self.handed_out and not is_lost(self._connection) and not self._connection.is_in_transaction():
            raise UsageError(_ENDED)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation; nothing of what it did is undone here if it fails."""
        async with self.turn():
            if self._engine.facts is None:
                await self._engine.know_schema(self._connection, self._limit)
            return await self._engine.run(self._connection, operation, limit=self._limit)

    async def know_schema(self) -> PostgresFacts:
        async with self.turn():
            return await self._engine.know_schema(self._connection, self._limit)

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """Undo what is done in the block, and only that, if it fails, or if it swallowed what cost the transaction."""
        name = f"wa_{next(self._savepoints)}"
        await to_the_end(self._execute(f"SAVEPOINT {name}"))
        try:
            yield
        except BaseException:
            await to_the_end(self._undo(name))
            raise
        await to_the_end(self._release(name))

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Have the connection to oneself. A failure in the block may have cost the transaction, and is remembered."""
        await self._turn.take()
        idle = time.monotonic() - self._used
        try:
            self.require_transaction()
            yield
        except WorkflowAdapterError as error:
            told = in_transaction(error)
            self._remember(told)
            if isinstance(error, BackendUnavailableError) and self._idle_limit is not None and idle >= self._idle_limit:
                raise BackendUnavailableError(
                    f"the transaction was idle for {idle:g} s, longer than idle_in_transaction_timeout"
                    f" ({self._idle_limit:g} s): the server ended it and nothing was written"
                ) from error.__cause__
            if told is not error:
                raise told from error.__cause__
            raise
        except BaseException as error:
            self._remember(error)
            raise
        finally:
            self._used = time.monotonic()
            self._turn.give()

    def _remember(self, error: BaseException) -> None:
        is_harmless = isinstance(error, WorkflowAdapterError) and not isinstance(error, BackendError)
        if not is_harmless and (self.failure is None or sqlstate(error) != ABORTED):
            self.failure = error

    async def refuse_if_aborted(self) -> None:
        """Raise where an error that was swallowed has cost the transaction. In a turn of the caller's.

        COMMIT of an aborted transaction rolls it back without an error, and asyncpg does not tell.
        """
        try:
            await self._connection.execute("SELECT 1", timeout=self._limit)
        except asyncpg.InFailedSQLTransactionError as error:
            raise _swallowed(self.failure) from (self.failure or error)
        except Exception as error:
            raise translated(error, is_lost(self._connection), InFlight()) from error

    async def _undo(self, savepoint: str) -> None:
        with suppress(WorkflowAdapterError):  # the error that brought us here goes first; the transaction is lost then
            await self._execute(f"ROLLBACK TO SAVEPOINT {savepoint}; RELEASE SAVEPOINT {savepoint}")

    async def _release(self, savepoint: str) -> None:
        swallowed = self.failure
        try:
            await self._execute(f"RELEASE SAVEPOINT {savepoint}")
        except BackendError as error:
            await self._undo(savepoint)
            if sqlstate(error) != ABORTED:
                raise
            raise _swallowed(swallowed) from (swallowed or error)

    async def _execute(self, sql: str) -> None:
        async with self.turn():
            await self._engine.execute(self._connection, sql, self._limit)
        # What went well shows that nothing before it has cost the transaction.
        self.failure = None


def _swallowed(failure: BaseException | None) -> WorkflowAdapterError:
    """What the end of a block raises for a failure that did not come out of it."""
    if isinstance(failure, SchemaError | ConfigurationError):
        # As before, and no conflict: to run the block again would be of no use.
        again = copy(failure)
        again.add_note(_UNDONE)
        return again
    return TransactionConflictError(f"{_UNDONE}; run it again")
