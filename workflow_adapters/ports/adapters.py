"""Contract of the bundle: the four ports over one shared connection pool."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

from workflow_adapters.ports.ai_call_logger import AICallLogger
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.ports.operations import Operations
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence


@runtime_checkable
class Ports(Protocol):
    """The four ports and the operations."""

    @property
    def persistence(self) -> WorkflowPersistence: ...
    @property
    def job_queue(self) -> JobQueue: ...
    @property
    def step_ledger(self) -> StepLedger: ...
    @property
    def ai_call_logger(self) -> AICallLogger: ...
    @property
    def operations(self) -> Operations: ...

    def transaction(self) -> AbstractAsyncContextManager[TransactionAdapters]:
        """A bundle whose ports share one transaction: all of it commits, or nothing.

        The rules are those of WorkflowPersistence.transaction; on a transaction's bundle this is a savepoint.
        """
        ...


@runtime_checkable
class TransactionAdapters(Ports, Protocol):
    """The bundle of `transaction()` and `bind()`.

    Its log_call is written on this connection before the next read of that logger and at the latest before the commit;
    if the block fails, its calls go to the outer logger: what was paid stays paid.
    """

    @property
    def connection(self) -> Any:
        """The driver's connection; None in memory."""
        ...


@runtime_checkable
class Adapters(Ports, Protocol):
    """An open bundle. It belongs to one event loop; a call from another loop, or after close, is a UsageError."""

    def bind(self, connection: Any) -> AbstractAsyncContextManager[TransactionAdapters]:
        """The bundle over the caller's own connection, inside the caller's open transaction.

        It never commits, rolls back, closes or changes a codec, row factory or setting. No open transaction:
        UsageError. The caller does not use the connection while a call on it runs.
        """
        ...

    async def migrate(self, *, plan: bool = False) -> list[str]:
        """Bring the schema to the current version and return the SQL that was run; with `plan`, that would be run.

        Idempotent, forward only, safe from several processes at once, never drops a column. A newer schema than this
        release knows is a SchemaError.
        """
        ...

    async def check_schema(self) -> None:
        """Raise SchemaError naming each missing table, column, index or enum value, and the mend."""
        ...
