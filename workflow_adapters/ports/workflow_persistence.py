"""Contract of the WorkflowPersistence port: its tables, and transactions over them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar, runtime_checkable

from workflow_adapters.ports.annotations import Annotations
from workflow_adapters.ports.definitions import Definitions
from workflow_adapters.ports.idempotency import Idempotency
from workflow_adapters.ports.logs import Logs
from workflow_adapters.ports.outbox import Outbox
from workflow_adapters.ports.runs import Runs
from workflow_adapters.ports.stages import Stages

T = TypeVar("T")


@runtime_checkable
class WorkflowPersistence(Runs, Definitions, Stages, Logs, Annotations, Outbox, Idempotency, Protocol):
    """Everything a workflow engine remembers besides its jobs, steps and model calls."""

    async def with_transaction(self, fn: Callable[[WorkflowPersistence], Awaitable[T]]) -> T:
        """Call ``await fn(tx)`` in one transaction; commit when it returns and give back its value.

        Any exception, cancellation included, rolls everything back and propagates unchanged. On a `tx` this opens a
        savepoint: an inner failure that is caught undoes only the inner work. While an inner block is open, a call on
        the outer `tx` waits for its end when it comes from a task outside the block, and is a UsageError when it comes
        from inside; two inner blocks of one `tx` run one after the other. Concurrent calls on one `tx` are serialised.
        A `tx` used after its end is a UsageError.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[WorkflowPersistence]:
        """The same as an async context manager that yields `tx`.

        Calls on the outer adapter inside the block are outside the transaction: reads see committed data. Where there
        is one writer (SQLite, memory) an outer write from inside the block is a UsageError at once; from another task
        it waits its turn, at most the adapter's busy_timeout (5 s by default), then BackendBusyError.
        """
        ...
