"""A connection inside a transaction: one statement at a time, savepoints, and an end that cannot be interrupted."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from workflow_adapters.errors import BackendError, BackendUnavailableError, WorkflowAdapterError
from workflow_adapters.postgres.connection import Connection, to_the_end
from workflow_adapters.postgres.detect import PostgresFacts
from workflow_adapters.postgres.engine import Engine
from workflow_adapters.sql.statement import Operation
from workflow_adapters.transaction_scope import Turn

T = TypeVar("T")


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
        """Undo what is done in the block, and only that, if it fails."""
        name = f"wa_{next(self._savepoints)}"
        await to_the_end(self._execute(f"SAVEPOINT {name}"))
        try:
            yield
        except BaseException:
            with suppress(BackendError):  # the error that brought us here goes first; the transaction is lost then
                await to_the_end(self._execute(f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}"))
            raise
        await to_the_end(self._execute(f"RELEASE SAVEPOINT {name}"))

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Have the connection to oneself. A failure in the block may have cost the transaction, and is remembered."""
        await self._turn.take()
        idle = time.monotonic() - self._used
        try:
            yield
        except BaseException as error:
            if isinstance(error, BackendError) or not isinstance(error, WorkflowAdapterError):
                self.failure = error
            if isinstance(error, BackendUnavailableError) and self._idle_limit is not None and idle >= self._idle_limit:
                raise BackendUnavailableError(
                    f"the transaction was idle for {idle:g} s, longer than idle_in_transaction_timeout"
                    f" ({self._idle_limit:g} s): the server ended it and nothing was written"
                ) from error.__cause__
            raise
        finally:
            self._used = time.monotonic()
            self._turn.give()

    async def _execute(self, sql: str) -> None:
        async with self.turn():
            await self._engine.execute(self._connection, sql, self._limit)
