"""What the databases of one bundle share, whether they stand for the pool, a transaction or a caller's connection."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final, TypeVar

import aiosqlite

from workflow_adapters.clock import Clock
from workflow_adapters.errors import UsageError
from workflow_adapters.lifecycle import Lifecycle
from workflow_adapters.sql.database import SchemaFacts
from workflow_adapters.sql.dialect import Dialect
from workflow_adapters.sql.statement import Operation
from workflow_adapters.sqlite.check import require_current_schema
from workflow_adapters.sqlite.dialect import SqliteDialect
from workflow_adapters.validation import instant

T = TypeVar("T")

_DIALECT: Final = SqliteDialect(own_functions=True)
_FACTS: Final = SchemaFacts()
"""Every schema on SQLite was made by migrate(), so there is nothing that it could lack."""


class Engine:
    """The clock, the event loop and the process of a bundle. Its transactions exclude one another."""

    def __init__(self, clock: Clock) -> None:
        self.lifecycle = Lifecycle("this bundle")
        self.schema_seen = False
        self._clock = clock
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether this is a child of the process that opened the connections: to SQLite they are the parent's alone."""
        return os.getpid() != self._process

    def now(self) -> datetime:
        return instant("clock", self._clock.now())

    def check(self) -> None:
        """UsageError for a call after close, in another event loop, or in a process that was forked off since."""
        if self.is_forked:
            raise UsageError("this bundle was opened before a fork; open one in this process")
        self.lifecycle.check()


class SqliteDatabase(ABC):
    """`Database` on SQLite."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def dialect(self) -> Dialect:
        return _DIALECT

    @property
    def known_facts(self) -> SchemaFacts:
        return _FACTS

    async def facts(self) -> SchemaFacts:
        self.engine.check()
        if not self.engine.schema_seen:
            await self.read(require_current_schema)
            self.engine.schema_seen = True
        return _FACTS

    def now(self) -> datetime:
        return self.engine.now()

    @abstractmethod
    async def read(self, operation: Callable[[], Operation[T]]) -> T: ...

    @abstractmethod
    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T: ...

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[ConnectedDatabase]: ...


class ConnectedDatabase(SqliteDatabase):
    """A transaction or a savepoint, on one connection."""

    def __init__(self, engine: Engine, connection: aiosqlite.Connection) -> None:
        super().__init__(engine)
        self.connection = connection
