"""The types of what the built-in backends yield: ports, all capabilities and the conveniences together.

Code that is to run on any adapter names the ports and asks for capabilities by isinstance; an adapter of a third party
keeps those, and need not know of this module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from workflow_adapters.conveniences import ConvenienceRows, JobQueueConveniences, PersistenceConveniences
from workflow_adapters.ports.adapters import Adapters, Ports, TransactionAdapters
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsFlush, SupportsListCalls
from workflow_adapters.ports.job_queue import (
    JobQueue,
    SupportsAbsoluteLease,
    SupportsCompleteMany,
    SupportsDefer,
    SupportsDequeueMany,
    SupportsFairness,
    SupportsHeartbeat,
    SupportsWaiting,
    SupportsWorkerAdoption,
)
from workflow_adapters.ports.outbox import SupportsOutboxLease
from workflow_adapters.ports.step_ledger import StepLedger, SupportsClearExcept
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

    from workflow_adapters.postgres.job_channel import ListenerState
    from workflow_adapters.postgres.pool_port import PoolStats

T = TypeVar("T")


class BuiltInPersistence(WorkflowPersistence, SupportsOutboxLease, ConvenienceRows, PersistenceConveniences, Protocol):
    """WorkflowPersistence with leases on outbox events, artifacts and the conveniences."""

    async def with_transaction(self, fn: Callable[[BuiltInPersistence], Awaitable[T]]) -> T:
        """As in WorkflowPersistence; `tx` can do all that this can."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[BuiltInPersistence]:
        """As in WorkflowPersistence; `tx` can do all that this can."""
        ...


class BuiltInJobQueue(
    JobQueue,
    SupportsDefer,
    SupportsAbsoluteLease,
    SupportsWorkerAdoption,
    SupportsFairness,
    SupportsWaiting,
    SupportsDequeueMany,
    SupportsCompleteMany,
    SupportsHeartbeat,
    JobQueueConveniences,
    Protocol,
):
    """JobQueue with every capability, and `enqueue`."""


class BuiltInStepLedger(StepLedger, SupportsClearExcept, Protocol):
    """StepLedger with every capability."""


class BuiltInAICallLogger(AICallLogger, SupportsListCalls, SupportsFlush, Protocol):
    """AICallLogger with every capability."""


class BuiltInPorts(Ports, Protocol):
    """What the open bundle and the bundle of a transaction have in common."""

    @property
    def persistence(self) -> BuiltInPersistence: ...
    @property
    def job_queue(self) -> BuiltInJobQueue: ...
    @property
    def step_ledger(self) -> BuiltInStepLedger: ...
    @property
    def ai_call_logger(self) -> BuiltInAICallLogger: ...

    def transaction(self) -> AbstractAsyncContextManager[BuiltInTransaction]:
        """A bundle whose ports share one transaction: all of it commits, or nothing.

        The rules are those of WorkflowPersistence.transaction; on a transaction's bundle this is a savepoint.
        """
        ...


class BuiltInTransaction(BuiltInPorts, TransactionAdapters, Protocol):
    """The bundle of `transaction()`, `bind()` and `bind_sqlalchemy()`."""


class BuiltInAdapters(BuiltInPorts, Adapters, Protocol):
    """What `open_adapters` and the other opening functions yield."""

    def bind(self, connection: Any) -> AbstractAsyncContextManager[BuiltInTransaction]:
        """The bundle over the caller's own connection, as in Adapters. In memory: ConfigurationError."""
        ...

    def bind_sqlalchemy(
        self, session_or_connection: AsyncSession | AsyncConnection
    ) -> AbstractAsyncContextManager[BuiltInTransaction]:
        """`bind` on the driver's connection that a SQLAlchemy session or connection uses.

        SQLAlchemy begins its transaction with its first statement, so one is run first. In memory: ConfigurationError.
        """
        ...


@runtime_checkable
class BuiltInPostgresAdapters(BuiltInAdapters, Protocol):
    """What `open_postgres` yields; isinstance tells it from what else `open_adapters` may have opened."""

    @property
    def pool_stats(self) -> PoolStats:
        """Connections in use and idle, and calls that wait for one."""
        ...

    @property
    def listener_state(self) -> ListenerState:
        """Whether new jobs of other processes are learnt of by LISTEN at the moment."""
        ...
