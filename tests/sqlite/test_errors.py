"""SQLite's errors as ours, by code."""

import sqlite3

import pytest

from workflow_adapters import BackendBusyError, BackendError, BackendUnavailableError, OutcomeUnknownError
from workflow_adapters.errors import TransactionConflictError
from workflow_adapters.sqlite.errors import is_busy, is_wrong_statement, translated


def failed(code: int | None) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("what SQLite says")
    if code is not None:
        error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "kind", "committing"),
    [
        (sqlite3.SQLITE_BUSY, BackendBusyError, BackendBusyError),
        (sqlite3.SQLITE_BUSY_RECOVERY, BackendBusyError, BackendBusyError),
        (sqlite3.SQLITE_LOCKED, BackendBusyError, BackendBusyError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, TransactionConflictError, TransactionConflictError),
        (sqlite3.SQLITE_FULL, BackendUnavailableError, BackendUnavailableError),
        (sqlite3.SQLITE_IOERR, BackendUnavailableError, OutcomeUnknownError),
        (sqlite3.SQLITE_IOERR_FSYNC, BackendUnavailableError, OutcomeUnknownError),
        (sqlite3.SQLITE_READONLY_DBMOVED, BackendUnavailableError, BackendUnavailableError),
        (sqlite3.SQLITE_CANTOPEN, BackendUnavailableError, BackendUnavailableError),
        (sqlite3.SQLITE_CORRUPT, BackendError, BackendError),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, BackendError, BackendError),
        (None, BackendError, BackendError),
    ],
)
def test_a_code_is_an_error(code: int | None, kind: type[BackendError], committing: type[BackendError]) -> None:
    assert type(translated(failed(code))) is kind
    assert type(translated(failed(code), committing=True)) is committing
    assert "what SQLite says" in str(translated(failed(code)))


@pytest.mark.parametrize(
    ("code", "busy", "wrong"),
    [
        (sqlite3.SQLITE_BUSY, True, False),
        (sqlite3.SQLITE_BUSY_RECOVERY, True, False),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, False, False),
        (sqlite3.SQLITE_ERROR, False, True),
        (None, False, False),
    ],
)
def test_what_waiting_helps_and_what_the_schema_explains(code: int | None, busy: bool, wrong: bool) -> None:
    assert is_busy(failed(code)) is busy
    assert is_wrong_statement(failed(code)) is wrong
