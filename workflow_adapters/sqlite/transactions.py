"""Explicit transactions: the span from BEGIN to COMMIT on the writer's connection, and savepoints in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeVar

import aiosqlite

from workflow_adapters.errors import BackendError, UsageError, WorkflowAdapterError
from workflow_adapters.sql.statement import Operation
from workflow_adapters.sqlite.connection import SqliteConnection, outlast, start
from workflow_adapters.sqlite.database import ConnectedDatabase, Engine
from workflow_adapters.sqlite.errors import undone
from workflow_adapters.sqlite.execution import (
    begin,
    commit,
    open_savepoint,
    perform_within,
    plain_rows,
    release_savepoint,
    roll_back,
    undo_savepoint,
)
from workflow_adapters.sqlite.patience import IMPATIENT, Patience
from workflow_adapters.sqlite.writer import Writer
from workflow_adapters.transaction_scope import TransactionScope

T = TypeVar("T")

_BLOCK_SAVEPOINT: Final = "wa_block"


class TransactionDatabase(ConnectedDatabase):
    """One open transaction or savepoint."""

    def __init__(self, engine: Engine, connection: aiosqlite.Connection, scope: TransactionScope) -> None:
        super().__init__(engine, connection)
        self._scope = scope

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        return await self.write(operation, single=True)

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        self.engine.check()
        async with self._scope.call():
            return await start(self.connection, lambda opened: _perform(opened, self._scope, operation, single=single))

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[TransactionDatabase]:
        self.engine.check()
        async with self._scope.inner() as inner:
            try:
                await start(self.connection, lambda opened: _enter(opened, self._scope, inner))
                yield TransactionDatabase(self.engine, self.connection, inner)
            except BaseException:
                await _abandon(self.connection, lambda opened: _leave(opened, inner, keep=False))
                raise
            await outlast(start(self.connection, lambda opened: _leave(opened, inner, keep=True)))


@asynccontextmanager
async def open_transaction(engine: Engine, writer: Writer, busy_timeout: float) -> AsyncGenerator[TransactionDatabase]:
    """A transaction that holds the write lock of the file from its first moment."""
    async with writer.lent() as connection:
        scope = TransactionScope(engine)
        patience = Patience.of(busy_timeout)
        try:
            await start(connection, lambda opened: _begin(opened, scope, patience))
            async with scope.entered():
                yield TransactionDatabase(engine, connection, scope)
        except BaseException:
            patience.end()
            await _abandon(connection, _roll_back)
            raise
        await outlast(start(connection, lambda opened: _commit(opened, Patience.of(busy_timeout))))


async def _abandon(connection: aiosqlite.Connection, end: Callable[[SqliteConnection], None]) -> None:
    """Undo a block that failed. What made it fail is the error to raise, so a connection that is gone is no other.

    The calls of a connection's thread run in order: this undoes a BEGIN, too, that nobody waits for any more.
    """
    with suppress(BackendError):
        await outlast(start(connection, end))


def _begin(opened: SqliteConnection, scope: TransactionScope, patience: Patience) -> None:
    opened.file.require()
    begin(opened, patience)
    opened.scopes, opened.fault = [scope], None


def _commit(opened: SqliteConnection, patience: Patience) -> None:
    try:
        if not opened.in_transaction:
            raise _gone(opened)
        opened.file.require()
        commit(opened, patience)
    finally:
        _roll_back(opened)


def _roll_back(opened: SqliteConnection) -> None:
    roll_back(opened)
    # The caller had the connection in hand.
    opened.close_cursors()
    opened.scopes = []
    opened.row_factory, opened.text_factory = None, str


def _perform(
    opened: SqliteConnection, scope: TransactionScope, operation: Callable[[], Operation[T]], *, single: bool
) -> T:
    _require(opened, scope)
    try:
        with plain_rows(opened):
            return perform_within(opened, operation, IMPATIENT, single=single)
    except Exception as error:
        if not opened.in_transaction:
            opened.fault = error
        raise


def _enter(opened: SqliteConnection, outer: TransactionScope, inner: TransactionScope) -> None:
    _require(opened, outer)
    open_savepoint(opened, _BLOCK_SAVEPOINT)
    opened.scopes.append(inner)


def _leave(opened: SqliteConnection, scope: TransactionScope, *, keep: bool) -> None:
    if scope not in opened.scopes:
        return
    del opened.scopes[opened.scopes.index(scope) :]
    if not keep:
        undo_savepoint(opened, _BLOCK_SAVEPOINT)
    elif opened.in_transaction:
        release_savepoint(opened, _BLOCK_SAVEPOINT)
    else:
        raise _gone(opened)


def _require(opened: SqliteConnection, scope: TransactionScope) -> None:
    """Refuse a stray call: what it would run in is not its transaction any more."""
    if scope not in opened.scopes:
        raise UsageError("this transaction has ended; use the adapter it came from, or open a new one")
    if not opened.in_transaction:
        raise _gone(opened)


def _gone(opened: SqliteConnection) -> WorkflowAdapterError:
    if opened.fault is None:
        return UsageError("the transaction was ended on its connection; leave COMMIT and ROLLBACK to the block")
    gone = undone()
    gone.__cause__ = opened.fault
    return gone
