"""What asyncpg raises, in the words of the port: one table, by SQLSTATE, never by the text of a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import asyncpg

from workflow_adapters.errors import (
    BackendBusyError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    OutcomeUnknownError,
    SchemaError,
    TransactionConflictError,
    UsageError,
    WorkflowAdapterError,
)

SERIALIZATION_FAILURE: Final = "40001"
DEADLOCK: Final = "40P01"
READ_ONLY: Final = "25006"
UNIQUE_VIOLATION: Final = "23505"
ABORTED: Final = "25P02"
"""A statement after one that failed, in the same transaction."""

# Of idle_session_timeout and idle_in_transaction_session_timeout: a statement that met this end was not begun.
_ENDED_IDLE: Final = frozenset({"57P05", "25P03"})

MIGRATE: Final = "run `await adapters.migrate()`; `await adapters.check_schema()` lists all that is missing"

# PgBouncer's for all it has to say, a refused startup parameter included.
_PROTOCOL_VIOLATION: Final = "08P01"

# Classes of what a connection is refused for where a setting has no such name or value.
_SAID_WRONG: Final = ("22", "42")
_NOT_A_SETTING: Final = (
    "a parameter of the DSN that asyncpg does not know is sent to the server; what other drivers take there, such as"
    " schema, pgbouncer or connect_timeout, are options of open_postgres"
)
_NO_PRIVILEGE: Final = "42501"

_Make: TypeAlias = Callable[[str], WorkflowAdapterError]


def _conflict(said: str) -> TransactionConflictError:
    return TransactionConflictError(f"the transaction is gone, run it again from its start: {said}")


def _busy(said: str) -> BackendBusyError:
    return BackendBusyError(f"a time limit was reached and nothing was written: {said}")


def _unavailable(said: str) -> BackendUnavailableError:
    return BackendUnavailableError(f"Postgres is not available: {said}")


def _read_only(said: str) -> BackendUnavailableError:
    return BackendUnavailableError(f"this Postgres server takes no writes: {said}")


def _schema(said: str) -> SchemaError:
    return SchemaError([said], MIGRATE)


def _pooled(said: str) -> ConfigurationError:
    return ConfigurationError(
        f"prepared statements do not last here; behind PgBouncer open with pgbouncer=True: {said}"
    )


# Full codes first, then classes (their first two characters). Whatever is in neither is a plain BackendError.
_MEANINGS: Final[dict[str, _Make]] = {
    SERIALIZATION_FAILURE: _conflict,
    DEADLOCK: _conflict,
    ABORTED: _conflict,
    UNIQUE_VIOLATION: _conflict,  # our statements expect conflicts; what is left is a race lost to a foreign writer
    "23P01": _conflict,
    "40003": OutcomeUnknownError,
    "55P03": _busy,  # lock_timeout
    "57014": _busy,  # statement_timeout, or somebody's pg_cancel_backend
    READ_ONLY: _read_only,
    "25P03": _unavailable,  # idle_in_transaction_session_timeout
    "25P04": _unavailable,  # transaction_timeout
    "08": _unavailable,
    "53": _unavailable,
    "57P01": _unavailable,
    "57P02": _unavailable,
    "57P03": _unavailable,
    "57P05": _unavailable,
    "22P02": _schema,  # our values are checked before they go; what the server does not know is an enum's label
    "3F000": _schema,
    "42P01": _schema,
    "42P10": _schema,  # no unique index that an ON CONFLICT names
    "42703": _schema,
    "42704": _schema,
    "42883": _schema,
    "26000": _pooled,
    "42P05": _pooled,
    "28": lambda said: ConfigurationError(f"Postgres refused the login: {said}"),
    "3D000": lambda said: ConfigurationError(f"Postgres has no such database: {said}"),
    "57P04": lambda said: ConfigurationError(f"Postgres has no such database: {said}"),
    _NO_PRIVILEGE: lambda said: ConfigurationError(f"the Postgres role may not do this: {said}"),
}


class TransactionSchemaError(SchemaError, BackendError):
    """The server's answer to a statement, which cost the transaction: no error but a BackendError may do that."""


class TransactionConfigurationError(ConfigurationError, BackendError):
    """The same."""


class InFlight(NamedTuple):
    """What a call had under way when it failed."""

    sent: bool = True
    """Whether a statement of the call had been answered before, or may have reached the server."""

    in_doubt: bool = False
    """Whether what was sent takes effect without a COMMIT yet to come: an autocommitted write, or the COMMIT itself."""


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of asyncpg's error, or of the one behind an error of ours."""
    for candidate in (error, error.__cause__):
        if isinstance(candidate, asyncpg.PostgresError):
            return candidate.sqlstate
    return None


def in_transaction(error: WorkflowAdapterError) -> WorkflowAdapterError:
    """The error as it is raised inside a transaction."""
    if isinstance(error, BackendError) or sqlstate(error) is None:
        return error
    if isinstance(error, SchemaError):
        return TransactionSchemaError(error.missing, error.mend)
    return TransactionConfigurationError(*error.args)


def is_stale_plan(error: BaseException) -> bool:
    """Whether a migration changed a table since the statement was prepared."""
    return isinstance(error.__cause__, asyncpg.InvalidCachedStatementError)


def was_never_sent(error: Exception) -> bool:
    """Whether asyncpg refused a statement before it wrote a byte of it, or the server had ended the session before.

    Of a connection whose end has been announced and not yet come, it says only that it is busy. There is nothing else
    to tell this by; words that another version might use would leave the outcome unknown, which is always right.
    """
    is_busy = isinstance(error, asyncpg.InternalClientError) and str(error).startswith("cannot switch to state")
    return is_busy or isinstance(error, asyncpg.InterfaceError) or sqlstate(error) in _ENDED_IDLE


def translated(error: Exception, closed: bool, in_flight: InFlight) -> WorkflowAdapterError:
    """The error of ours for what a statement raised; `closed` says whether its connection is gone."""
    if isinstance(error, TimeoutError):
        return _timed_out(in_flight)
    if closed or isinstance(error, OSError | asyncpg.PostgresConnectionError):
        return _lost(error, in_flight)
    if isinstance(error, asyncpg.PostgresError):
        return meaning(error)
    if isinstance(error, asyncpg.DataError | asyncpg.InternalClientError):
        return BackendError(f"asyncpg could not handle the statement: {error}")
    if isinstance(error, asyncpg.InterfaceError):
        return UsageError(f"the connection can not be used here: {error}")
    return BackendError(f"{type(error).__name__}: {error}")


def meaning(error: asyncpg.PostgresError) -> WorkflowAdapterError:
    """What the server's error means for a call that it ended, by the table."""
    state = error.sqlstate or ""
    # The detail is left out: it may hold values of a row. It is there in the cause.
    said = str(error.args[0]) if error.args else type(error).__name__
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        # Outside a transaction asyncpg has prepared it anew by itself.
        return _conflict(said)
    make = _MEANINGS.get(state) or _MEANINGS.get(state[:2])
    return make(said) if make is not None else BackendError(f"{said} (SQLSTATE {state})")


def connecting_failed(error: Exception) -> WorkflowAdapterError:
    """The error of ours for what `asyncpg.connect` raised."""
    if isinstance(error, TimeoutError):
        return _unavailable("no connection within the time limit")
    if isinstance(error, asyncpg.PostgresError):
        if error.sqlstate == _PROTOCOL_VIOLATION:
            return _unavailable(f"{error.args[0]} (behind PgBouncer open with pgbouncer=True)")
        if (error.sqlstate or "")[:2] in _SAID_WRONG and error.sqlstate != _NO_PRIVILEGE:
            return ConfigurationError(f"Postgres takes no such setting: {error.args[0]} ({_NOT_A_SETTING})")
        found = meaning(error)
        return found if isinstance(found, BackendUnavailableError | ConfigurationError) else _unavailable(str(error))
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return _unavailable("none of the hosts has the wanted target_session_attrs")
    return _unavailable(str(error))


def _lost(error: Exception, in_flight: InFlight) -> BackendError:
    said = _last_words(error)
    if in_flight.in_doubt and in_flight.sent:
        return OutcomeUnknownError(f"the connection was lost while a write was in flight: {said}")
    return BackendUnavailableError(f"the connection was lost and nothing was written: {said}")


def _timed_out(in_flight: InFlight) -> BackendError:
    if in_flight.in_doubt:
        return OutcomeUnknownError("the client's time limit was reached while a write was in flight")
    return _busy("the client's limit on a statement")


def _last_words(error: Exception) -> str:
    """Why the server ended the connection, where it said so."""
    cause = error.__cause__
    return str(cause.args[0]) if isinstance(cause, asyncpg.PostgresError) and cause.args else str(error)
