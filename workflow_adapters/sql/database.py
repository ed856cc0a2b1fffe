"""What the shared operations need of a database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar

from workflow_adapters.sql.statement import Operation

T = TypeVar("T")


class Database(Protocol):
    """Runs operations, on a pool, on one transaction, or on a caller's connection."""

    def now(self) -> datetime:
        """The adapter's Clock, to the millisecond."""
        ...

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        """Run an operation that only reads, on one snapshot at least per statement.

        The operation is given as a function because it may be run again (a lost connection before anything was
        sent, a busy file).
        """
        ...

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        """Run an operation that may write, as a whole or not at all.

        `single` promises that it yields exactly one writing statement, so that Postgres needs no BEGIN and COMMIT
        around it and SQLite no savepoint. One that is not single and fails half-way leaves nothing behind: it runs in
        its own transaction or, inside an open one, in a savepoint.
        """
        ...
