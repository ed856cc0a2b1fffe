"""The WorkflowPersistence over a database, but for what each database does in its own way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self, TypeVar

from workflow_adapters.conveniences import PersistenceConveniences
from workflow_adapters.sql.annotations import SqlAnnotations
from workflow_adapters.sql.convenience_rows import SqlConvenienceRows
from workflow_adapters.sql.database import Database
from workflow_adapters.sql.definitions import SqlDefinitions
from workflow_adapters.sql.idempotency import SqlIdempotency
from workflow_adapters.sql.logs import SqlLogs
from workflow_adapters.sql.outbox import SqlOutbox
from workflow_adapters.sql.runs import SqlRuns
from workflow_adapters.sql.stages import SqlStages

T = TypeVar("T")


class SqlWorkflowPersistence(
    SqlRuns,
    SqlDefinitions,
    SqlStages,
    SqlLogs,
    SqlAnnotations,
    SqlOutbox,
    SqlIdempotency,
    SqlConvenienceRows,
    PersistenceConveniences,
):
    """A database's own persistence adds appends, claims and leases of the outbox (a subclass of `SqlOutbox`)."""

    async def with_transaction(self, fn: Callable[[Self], Awaitable[T]]) -> T:
        async with self.transaction() as tx:
            return await fn(tx)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Self]:
        async with self._database.transaction() as database:
            yield self._on(database)

    def _on(self, database: Database) -> Self:
        """The same adapter on a transaction."""
        return type(self)(database)
