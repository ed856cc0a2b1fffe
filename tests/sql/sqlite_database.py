"""The smallest `Database`: a plain sqlite3 connection in the calling thread, without an engine around it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

from workflow_adapters.clock import Clock
from workflow_adapters.sql.database import SchemaFacts
from workflow_adapters.sql.dialect import Dialect
from workflow_adapters.sql.statement import Operation
from workflow_adapters.sqlite.dialect import SqliteDialect
from workflow_adapters.sqlite.functions import register_functions
from workflow_adapters.sqlite.schema import MIGRATIONS
from workflow_adapters.sqlite.style import SqliteStyle

T = TypeVar("T")

STYLE = SqliteStyle()


def connect() -> sqlite3.Connection:
    """A database in memory with the schema."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    register_functions(connection)
    for migration in MIGRATIONS:
        for statement in migration.statements:
            connection.execute(statement)
    return connection


class PlainDatabase:
    """Each write is a transaction or, inside one, a savepoint. `statements` are those that ran, as SQLite saw them."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, *, own_functions: bool = True) -> None:
        self.connection = connection
        self.statements: list[tuple[str, tuple[Any, ...]]] = []
        self._clock = clock
        self._dialect = SqliteDialect(own_functions=own_functions)

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    @property
    def known_facts(self) -> SchemaFacts:
        return SchemaFacts()

    async def facts(self) -> SchemaFacts:
        return SchemaFacts()

    def now(self) -> datetime:
        return self._clock.now()

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        return self._drive(operation())

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        async with self.transaction():
            return self._drive(operation())

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[PlainDatabase]:
        self.connection.execute("SAVEPOINT block")
        try:
            yield self
        except BaseException:
            self.connection.execute("ROLLBACK TO block")
            raise
        finally:
            self.connection.execute("RELEASE block")

    def _drive(self, operation: Operation[T]) -> T:
        try:
            statement = next(operation)
            while True:
                rendered = STYLE.render(statement.text)
                args = STYLE.bind(rendered, statement.args)
                self.statements.append((rendered.text, args))
                statement = operation.send(self.connection.execute(rendered.text, args).fetchall())
        except StopIteration as end:
            return end.value
