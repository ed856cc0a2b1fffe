"""A caller's own aiosqlite connection, inside the caller's open transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import aiosqlite
import anyio.to_thread

from workflow_adapters.errors import ConfigurationError, SchemaError, UsageError, WorkflowAdapterError
from workflow_adapters.sql.dialect import Dialect
from workflow_adapters.sql.statement import Operation
from workflow_adapters.sqlite.check import check_schema, expected_parts
from workflow_adapters.sqlite.connection import outlast
from workflow_adapters.sqlite.database import ConnectedDatabase, Engine
from workflow_adapters.sqlite.dialect import SqliteDialect
from workflow_adapters.sqlite.errors import is_wrong_statement, translated, undone
from workflow_adapters.sqlite.execution import OPERATION_SAVEPOINT, STYLE, plain_rows
from workflow_adapters.transaction_scope import TransactionScope

T = TypeVar("T")

_DIALECT: Final = SqliteDialect(own_functions=False)


@dataclass(slots=True)
class _Fate:
    """Of the caller's transaction: the error with which SQLite undid it."""

    fault: Exception | None = None

    def require(self) -> None:
        if self.fault is not None:
            raise undone() from self.fault


class BoundDatabase(ConnectedDatabase):
    """The caller's transaction, or a savepoint in it.

    Statements go through aiosqlite's public methods, a hop each. The caller's row and text factories are set aside for
    the length of a statement; nothing else of the connection is touched.
    """

    def __init__(
        self,
        engine: Engine,
        connection: aiosqlite.Connection,
        scope: TransactionScope,
        *,
        fate: _Fate | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(engine, connection)
        self._scope = scope
        self._depth = depth
        self.fate = fate or _Fate()

    @property
    def dialect(self) -> Dialect:
        return _DIALECT

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        return await self.write(operation, single=True)

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        self.engine.check()
        async with self._scope.call():
            self.require_transaction()
            # In a task of its own: a cancel between two of its statements would leave the operation half done.
            performing = self._perform(operation) if single else self._perform_in_savepoint(operation)
            return await outlast(asyncio.ensure_future(performing))

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[BoundDatabase]:
        self.engine.check()
        depth = self._depth + 1
        name = f"wa_block_{depth}"
        async with self._scope.inner() as inner:
            self.require_transaction()
            try:
                await outlast(asyncio.ensure_future(self._execute(f"SAVEPOINT {name}")))
                yield BoundDatabase(self.engine, self.connection, inner, fate=self.fate, depth=depth)
                self.require_transaction()
            except BaseException:
                await outlast(asyncio.ensure_future(self._undo(name)))
                raise
            await outlast(asyncio.ensure_future(self._execute(f"RELEASE {name}")))

    def require_transaction(self) -> None:
        """UsageError unless the caller's transaction is open; TransactionConflictError where SQLite undid it."""
        self.fate.require()
        try:
            is_open = self.connection.in_transaction
        except ValueError as closed:
            raise UsageError("the caller's connection is closed") from closed
        if not is_open:
            raise UsageError(
                "no transaction is open on the caller's connection: run BEGIN before bind() (a connection in sqlite3's "
                "legacy mode begins none before its first write), and leave the block before COMMIT or ROLLBACK"
            )

    async def require_foreign_keys(self) -> None:
        """ConfigurationError unless they are enforced. Inside a transaction it is too late to switch them on."""
        [(enforced,)] = await self._fetch("PRAGMA foreign_keys")
        if not enforced:
            raise ConfigurationError(
                "foreign keys are off on the caller's connection; run PRAGMA foreign_keys = ON before its transaction"
            )

    async def _perform_in_savepoint(self, operation: Callable[[], Operation[T]]) -> T:
        await self._execute(f"SAVEPOINT {OPERATION_SAVEPOINT}")
        try:
            answer = await self._perform(operation)
        except BaseException:
            await self._undo(OPERATION_SAVEPOINT)
            raise
        await self._execute(f"RELEASE {OPERATION_SAVEPOINT}")
        return answer

    async def _perform(self, operation: Callable[[], Operation[T]]) -> T:
        try:
            return await self._drive(operation())
        except sqlite3.Error as error:
            refusal = await self._refusal(error)
            self._note_if_undone(refusal)
            raise refusal from error

    async def _drive(self, steps: Operation[T]) -> T:
        try:
            statement = next(steps)
            while True:
                rendered = STYLE.render(statement.text)
                statement = steps.send(await self._fetch(rendered.text, STYLE.bind(rendered, statement.args)))
        except StopIteration as end:
            return end.value
        finally:
            steps.close()

    async def _execute(self, sql: str) -> None:
        try:
            await self._fetch(sql)
        except sqlite3.Error as error:
            refusal = translated(error)
            self._note_if_undone(refusal)
            raise refusal from error

    def _note_if_undone(self, error: Exception) -> None:
        with suppress(ValueError):  # it was closed meanwhile, which is told by itself
            if not self.connection.in_transaction:
                self.fate.fault = error

    async def _undo(self, savepoint: str) -> None:
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                await self._fetch(f"ROLLBACK TO {savepoint}")
                await self._fetch(f"RELEASE {savepoint}")

    async def _fetch(self, sql: str, args: Sequence[Any] = ()) -> list[Any]:
        with plain_rows(self.connection):
            return list(await self.connection.execute_fetchall(sql, args))

    async def _refusal(self, error: sqlite3.Error) -> WorkflowAdapterError:
        if is_wrong_statement(error):
            await anyio.to_thread.run_sync(expected_parts)
            try:
                await self._drive(check_schema())
            except SchemaError as lacking:
                return lacking
            except sqlite3.Error as further:
                error.add_note(f"and the schema could not be read: {further}")
        return translated(error)


@asynccontextmanager
async def open_bound(engine: Engine, connection: object) -> AsyncGenerator[BoundDatabase]:
    """The caller's transaction for the length of a block. Its begin and its end stay the caller's."""
    engine.check()
    if not isinstance(connection, aiosqlite.Connection):
        raise ConfigurationError(
            f"bind() takes an aiosqlite connection, not a {type(connection).__name__}; there is bind_sqlalchemy() too"
        )
    scope = TransactionScope(engine)
    database = BoundDatabase(engine, connection, scope)
    database.require_transaction()
    await outlast(asyncio.ensure_future(database.require_foreign_keys()))
    async with scope.entered():
        yield database
    database.fate.require()
