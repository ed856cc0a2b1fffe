"""SQLite's errors as ours: one table, by error code and never by text."""

from __future__ import annotations

import sqlite3
from typing import Final

from workflow_adapters.errors import (
    BackendBusyError,
    BackendError,
    BackendUnavailableError,
    OutcomeUnknownError,
    TransactionConflictError,
)

_PRIMARY: Final = 0xFF
"""The low byte of an extended error code is the code it refines."""

_BY_CODE: Final[dict[int, tuple[type[BackendError], str]]] = {
    sqlite3.SQLITE_BUSY: (BackendBusyError, "another connection holds the write lock of the database file"),
    sqlite3.SQLITE_LOCKED: (BackendBusyError, "another connection holds a lock on the table"),
    sqlite3.SQLITE_BUSY_SNAPSHOT: (
        TransactionConflictError,
        "somebody wrote since this transaction first read, so it can not write any more; run it again from its start",
    ),
    sqlite3.SQLITE_FULL: (BackendUnavailableError, "the disk or the database is full"),
    sqlite3.SQLITE_IOERR: (BackendUnavailableError, "the operating system reported an I/O error"),
    sqlite3.SQLITE_READONLY: (BackendUnavailableError, "the database file can not be written"),
    sqlite3.SQLITE_CANTOPEN: (BackendUnavailableError, "the database file can not be opened"),
    sqlite3.SQLITE_PERM: (BackendUnavailableError, "the database file may not be accessed"),
    sqlite3.SQLITE_PROTOCOL: (BackendUnavailableError, "the locks of the database file could not be had"),
}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether waiting can help: a lock is held. A stale snapshot stays stale however long one waits."""
    code = _code(error)
    return code & _PRIMARY == sqlite3.SQLITE_BUSY and code != sqlite3.SQLITE_BUSY_SNAPSHOT


def is_wrong_statement(error: sqlite3.Error) -> bool:
    """Whether SQLite refused the statement as such. Ours are right, so the schema is not the one they are for."""
    return _code(error) == sqlite3.SQLITE_ERROR


def translated(error: sqlite3.Error, *, committing: bool = False) -> BackendError:
    """Our error for SQLite's; raise it ``from`` the original.

    `committing`: what failed was a COMMIT, or a statement that is its own transaction. After an I/O error in there the
    write may be in the file or not.
    """
    code = _code(error)
    if committing and code & _PRIMARY == sqlite3.SQLITE_IOERR:
        return OutcomeUnknownError(f"the write may or may not be stored: {error}")
    kind, meaning = _BY_CODE.get(code) or _BY_CODE.get(code & _PRIMARY) or (BackendError, "SQLite failed")
    return kind(f"{meaning}: {error}")


def undone() -> TransactionConflictError:
    """The error of a transaction that SQLite rolled back by itself; raise it ``from`` the error that made it."""
    return TransactionConflictError("SQLite undid this transaction after an error; run it again from its start")


def _code(error: sqlite3.Error) -> int:
    # Errors of the sqlite3 module itself, such as a closed connection, carry no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
