"""The WorkflowPersistence port: its tables, and transactions over them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self, TypeVar

from workflow_adapters.conveniences import PersistenceConveniences
from workflow_adapters.memory.annotations import MemoryAnnotations
from workflow_adapters.memory.artifacts import MemoryArtifacts
from workflow_adapters.memory.definitions import MemoryDefinitions
from workflow_adapters.memory.idempotency import MemoryIdempotency
from workflow_adapters.memory.logs import MemoryLogs
from workflow_adapters.memory.outbox import MemoryOutbox
from workflow_adapters.memory.runs import MemoryRuns
from workflow_adapters.memory.stages import MemoryStages

T = TypeVar("T")


class MemoryPersistence(
    MemoryRuns,
    MemoryDefinitions,
    MemoryStages,
    MemoryLogs,
    MemoryAnnotations,
    MemoryOutbox,
    MemoryIdempotency,
    MemoryArtifacts,
    PersistenceConveniences,
):
    async def with_transaction(self, fn: Callable[[Self], Awaitable[T]]) -> T:
        async with self.transaction() as tx:
            return await fn(tx)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Self]:
        async with self._session.transaction() as session:
            yield type(self)(session)
