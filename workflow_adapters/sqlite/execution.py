"""Operations on a connection, in its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from workflow_adapters.errors import SchemaError, WorkflowAdapterError
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sqlite.check import check_schema
from workflow_adapters.sqlite.errors import is_wrong_statement, translated
from workflow_adapters.sqlite.patience import IMPATIENT, Patience, patiently
from workflow_adapters.sqlite.style import SqliteStyle

T = TypeVar("T")

STYLE: Final = SqliteStyle()

OPERATION_SAVEPOINT: Final = "wa_operation"


def perform(
    connection: sqlite3.Connection, operation: Callable[[], Operation[T]], patience: Patience, *, commits: bool = False
) -> T:
    """Run an operation's statements and return its answer. `commits`: each statement is a transaction of its own."""
    try:
        return _drive(connection, operation, patience)
    except sqlite3.Error as error:
        raise _refusal(connection, error, committing=commits) from error


def perform_alone(
    connection: sqlite3.Connection, operation: Callable[[], Operation[T]], patience: Patience, *, single: bool
) -> T:
    """Run an operation that may write as a transaction of its own."""
    if single:
        return perform(connection, operation, patience, commits=True)
    begin(connection, patience)
    try:
        answer = perform(connection, operation, patience)
    except BaseException:
        roll_back(connection)
        raise
    commit(connection, patience)
    return answer


def perform_within(
    connection: sqlite3.Connection, operation: Callable[[], Operation[T]], patience: Patience, *, single: bool
) -> T:
    """Run an operation inside the open transaction so that its failure leaves nothing of it behind.

    A single statement needs no savepoint: SQLite undoes the one that fails.
    """
    if single:
        return perform(connection, operation, patience)
    open_savepoint(connection, OPERATION_SAVEPOINT)
    try:
        answer = perform(connection, operation, patience)
    except BaseException:
        undo_savepoint(connection, OPERATION_SAVEPOINT)
        raise
    release_savepoint(connection, OPERATION_SAVEPOINT)
    return answer


def begin(connection: sqlite3.Connection, patience: Patience) -> None:
    """Take the write lock at once: a transaction that reads first may find that it can not write any more."""
    _execute(connection, "BEGIN IMMEDIATE", patience)


def commit(connection: sqlite3.Connection, patience: Patience) -> None:
    """Commit, or roll back and say why."""
    try:
        _execute(connection, "COMMIT", patience, commits=True)
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """End the open transaction, if there is one. Whether SQLite let us, `in_transaction` tells."""
    if connection.in_transaction:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def open_savepoint(connection: sqlite3.Connection, name: str) -> None:
    _execute(connection, f"SAVEPOINT {name}", IMPATIENT)


def release_savepoint(connection: sqlite3.Connection, name: str) -> None:
    _execute(connection, f"RELEASE {name}", IMPATIENT)


def undo_savepoint(connection: sqlite3.Connection, name: str) -> None:
    """Undo what was done since the savepoint: all of the transaction, where SQLite can not do less."""
    if connection.in_transaction:
        try:
            connection.execute(f"ROLLBACK TO {name}")
            connection.execute(f"RELEASE {name}")
        except sqlite3.Error:
            roll_back(connection)


class HasFactories(Protocol):
    row_factory: Any
    text_factory: Any


@contextmanager
def plain_rows(connection: HasFactories) -> Generator[None]:
    """Rows as tuples and text as str for our own statements; then the caller's factories are there again."""
    row_factory, text_factory = connection.row_factory, connection.text_factory
    connection.row_factory, connection.text_factory = None, str
    try:
        yield
    finally:
        connection.row_factory, connection.text_factory = row_factory, text_factory


def _drive(connection: sqlite3.Connection, operation: Callable[[], Operation[T]], patience: Patience) -> T:
    """Run an operation. It is begun anew for each attempt at its first statement, so that the clock it reads is not
    older than the lock it waited for.
    """
    steps = operation()

    def begin_anew() -> list[Any]:
        nonlocal steps
        steps = operation()
        return _answer(connection, next(steps))

    try:
        rows = patiently(begin_anew, patience)
        while True:
            rows = patiently(partial(_answer, connection, steps.send(rows)), patience)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


def _answer(connection: sqlite3.Connection, statement: Statement) -> list[Any]:
    rendered = STYLE.render(statement.text)
    return _fetch(connection, rendered.text, STYLE.bind(rendered, statement.args))


def _execute(connection: sqlite3.Connection, sql: str, patience: Patience, *, commits: bool = False) -> None:
    try:
        patiently(partial(_fetch, connection, sql), patience)
    except sqlite3.Error as error:
        raise _refusal(connection, error, committing=commits) from error


def _fetch(connection: sqlite3.Connection, sql: str, args: Sequence[Any] = ()) -> list[Any]:
    return sqlite3.Cursor(connection).execute(sql, args).fetchall()


def _refusal(connection: sqlite3.Connection, error: sqlite3.Error, *, committing: bool) -> WorkflowAdapterError:
    """Our error for what SQLite says to a statement; a schema that is not ours is told as such."""
    if is_wrong_statement(error):
        try:
            _drive(connection, check_schema, IMPATIENT)
        except SchemaError as lacking:
            return lacking
        except sqlite3.Error as further:
            error.add_note(f"and the schema could not be read: {further}")
    return translated(error, committing=committing)
