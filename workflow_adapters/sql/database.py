"""What the shared operations need of a database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from workflow_adapters.sql.dialect import Dialect
from workflow_adapters.sql.statement import Operation

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFacts:
    """Which parts the schema has that older databases in the wild lack."""

    definition_versions: bool = True
    """workflow_definitions, and definitionVersion and redriveCount of workflow_runs."""

    call_costs: bool = True
    """estimatedCost, reportedCost, costSource, servedBy, cachedInputTokens and reasoningTokens of ai_calls."""


class Database(Protocol):
    """Runs operations, on a pool, on one transaction, or on a caller's connection.

    The objects of one bundle share what is known of the schema. Every method may raise a BackendError; nothing of a
    driver leaks, and an error of ours that an operation raises comes out as it is.
    """

    @property
    def dialect(self) -> Dialect:
        """The statements that are this database's own."""
        ...

    @property
    def known_facts(self) -> SchemaFacts:
        """What is known of the schema without asking: that it is current, until `facts` has looked."""
        ...

    async def facts(self) -> SchemaFacts:
        """What the schema has; read from the catalogue by the bundle's first caller, without I/O afterwards."""
        ...

    def now(self) -> datetime:
        """The adapter's Clock, in UTC and to the millisecond."""
        ...

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        """Run an operation that only reads, each statement on one snapshot at least.

        The operation is given as a function because it may be run again (a lost connection before anything was
        sent, a busy file).
        """
        ...

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        """Run an operation that may write, as a whole or not at all.

        `single` promises that each of its statements may stand alone: at most one of them changes anything, or each
        change is right without the others. So Postgres needs no BEGIN and COMMIT around it, each statement sees what
        was committed before it, and SQLite needs no savepoint. An operation that is not single and fails half-way
        leaves nothing behind: it runs in its own READ COMMITTED transaction or, inside an open one, in a savepoint.
        An error of ours rolls back like any other, and leaves the surrounding transaction usable.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[Database]:
        """A transaction, or inside one a savepoint, by the rules of WorkflowPersistence.transaction."""
        ...


class SqlPort:
    """Base of the ports over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
