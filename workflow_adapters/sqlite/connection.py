"""One connection to a database file: how it is opened, called in its thread, and closed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast
from weakref import WeakSet

import aiosqlite
import anyio

from workflow_adapters.errors import BackendUnavailableError, ConfigurationError
from workflow_adapters.lifecycle import wait_through_cancel
from workflow_adapters.sqlite.errors import translated
from workflow_adapters.sqlite.execution import perform
from workflow_adapters.sqlite.functions import register_functions
from workflow_adapters.sqlite.open_file import OpenFile
from workflow_adapters.sqlite.patience import Patience, patiently
from workflow_adapters.sqlite.schema import NEWEST
from workflow_adapters.sqlite.schema.migration import refuse_newer

T = TypeVar("T")

Synchronous: TypeAlias = Literal["FULL", "NORMAL", "OFF"]

_OLDEST: Final = (3, 37, 0)
"""The first SQLite with STRICT tables."""
_CACHED_STATEMENTS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is opened, and how."""

    path: str
    synchronous: Synchronous = "FULL"
    busy_timeout: float = 5.0
    file: OpenFile = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", OpenFile(self.path))


class _Call(str):
    """Marks an `execute` that is not SQL: its parameters are a function to call with the connection."""

    __slots__ = ()


_CALL: Final = _Call("a call in the connection's thread")


@dataclass(frozen=True, slots=True)
class _Answer:
    value: Any

    def fetchall(self) -> Any:
        return self.value


class SqliteConnection(sqlite3.Connection):
    """A connection of ours.

    `scopes` are the transaction and the savepoints that are open on it, outermost first; `fault` is the error that made
    SQLite undo that transaction. `file` is what it has open.
    """

    file: OpenFile

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.scopes: list[object] = []
        self.fault: Exception | None = None
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def cursor(self, *args: Any, **options: Any) -> Any:
        return self._noted(super().cursor(*args, **options))

    def close_cursors(self) -> None:
        """End the queries that a caller left open in a transaction: they would hold its snapshot on, and whoever writes
        on an old snapshot is refused.
        """
        for cursor in list(self._cursors):
            cursor.close()
        self._cursors.clear()

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        if type(sql) is _Call:
            return _Answer(parameters(self))
        return self._noted(super().execute(sql, parameters))

    def _noted(self, cursor: sqlite3.Cursor) -> sqlite3.Cursor:
        if self.scopes:
            self._cursors.add(cursor)
        return cursor


def start(connection: aiosqlite.Connection, function: Callable[[SqliteConnection], T]) -> asyncio.Future[T]:
    """Begin a call in the thread of a connection of ours and return the future of its end.

    Calls run in the order in which they are begun, and a call that has begun runs to its end, whoever is cancelled.

    The coroutine is stepped once by hand: that puts the call into the thread's queue and gives the future that the
    thread resolves. A task around it would cost a tenth of the throughput of a single caller, and would be one more
    thing to cancel.
    """
    call: Any = connection.execute_fetchall(_CALL, cast("Any", function))
    try:
        future = call.send(None)
    except ValueError as error:
        raise BackendUnavailableError("the connection has been closed") from error
    future._asyncio_future_blocking = False  # noqa: SLF001 - what asyncio's own Task does with a future it was given
    return future


async def outlast(future: asyncio.Future[T]) -> T:
    """Wait for the end of a future whatever cancels arrive, and only then let the cancel out."""
    ended = anyio.Event()
    future.add_done_callback(lambda _: ended.set())
    try:
        await wait_through_cancel(ended)
    except BaseException:
        if not future.cancelled():
            future.exception()  # nobody else will look at it, and asyncio would complain about that
        raise
    return future.result()


async def obtain(making: Awaitable[T], dispose: Callable[[T], Awaitable[None]]) -> T:
    """Wait for something that has to be disposed of, and do so when the wait was cancelled."""
    made = asyncio.ensure_future(making)
    try:
        return await outlast(made)
    except asyncio.CancelledError:
        if not made.cancelled() and made.exception() is None:
            await outlast(asyncio.ensure_future(dispose(made.result())))
        raise


async def open_connection(target: Target, *, read_only: bool = False) -> aiosqlite.Connection:
    """Open and check a connection, or leave nothing behind."""
    patience = Patience.of(target.busy_timeout)
    return await obtain(_open(target, patience, read_only=read_only), close_connection)


async def close_connection(connection: aiosqlite.Connection) -> None:
    """Close a connection after whatever its thread is doing. It may be closed already."""
    await outlast(asyncio.ensure_future(connection.close()))


async def _open(target: Target, patience: Patience, *, read_only: bool) -> aiosqlite.Connection:
    target.file.require()
    connection = _make(target)
    try:
        await connection
    except sqlite3.Error as error:
        raise translated(error) from error
    try:
        await start(connection, lambda opened: _prepare(opened, target, patience, read_only=read_only))
    except BaseException:
        await connection.close()
        raise
    return connection


def _make(target: Target) -> aiosqlite.Connection:
    """Make a connection whose thread does not keep alive a process that forgets to close it.

    A thread inherits being a daemon from the thread that makes it; aiosqlite itself has no option for that.
    """
    made: list[aiosqlite.Connection] = []

    def make() -> None:
        made.append(
            aiosqlite.connect(
                target.path,
                # Waiting for a lock is `patience`'s. Set here, it holds before the first statement.
                timeout=0,
                isolation_level=None,
                cached_statements=_CACHED_STATEMENTS,
                factory=SqliteConnection,
            )
        )

    maker = Thread(target=make, daemon=True)
    maker.start()
    maker.join()
    return made[0]


def _prepare(connection: SqliteConnection, target: Target, patience: Patience, *, read_only: bool) -> None:
    if sqlite3.sqlite_version_info < _OLDEST:
        raise ConfigurationError(f"SQLite {sqlite3.sqlite_version} is too old: 3.37 or newer is needed")
    try:
        _set(connection, "foreign_keys", "ON", expected=1)
        # Switching to WAL takes the file for itself for a moment; afterwards this changes nothing.
        patiently(lambda: _set(connection, "journal_mode", "WAL", expected="wal"), patience)
        # Only now it is there: a file is made by the first write.
        target.file.recognise()
        connection.file = target.file
        connection.execute(f"PRAGMA synchronous = {target.synchronous}")
        register_functions(connection)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        perform(connection, lambda: refuse_newer(NEWEST), patience)
    except sqlite3.Error as error:
        raise translated(error) from error


def _set(connection: SqliteConnection, pragma: str, value: str, *, expected: object) -> None:
    # SQLite ignores a pragma that it can not obey.
    connection.execute(f"PRAGMA {pragma} = {value}")
    [(actual,)] = connection.execute(f"PRAGMA {pragma}").fetchall()
    if actual != expected:
        raise ConfigurationError(f"SQLite does not obey PRAGMA {pragma} = {value} on this database: it says {actual}")
