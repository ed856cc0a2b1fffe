"""An adapter of a third party keeps the ports alone, and the runtime takes it; nothing here runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from workflow_adapters import (
    Adapters,
    BuiltInAdapters,
    BuiltInPostgresAdapters,
    BuiltInTransaction,
    JobQueue,
    SupportsDequeueMany,
    TransactionAdapters,
    WorkflowPersistence,
    open_adapters,
    supports,
)
from workflow_adapters.runtime import (
    JobContext,
    OutboxRelay,
    Purger,
    Reaper,
    Retention,
    Worker,
    WorkflowService,
    run_workflow_service,
)


async def handle(ctx: JobContext) -> None:
    async with ctx.transaction() as tx:
        await tx.job_queue.enqueue_parallel([])


async def publish(event: object) -> None:
    raise NotImplementedError(event)


def run_loops(queue: JobQueue, persistence: WorkflowPersistence, adapters: Adapters) -> None:
    Worker(queue, handle, concurrency=4, lease=timedelta(minutes=1))
    Worker(queue, handle, adapters=adapters)
    Reaper(queue, stale_after=timedelta(minutes=1))
    OutboxRelay(persistence, publish, batch=5)
    Purger(adapters, Retention(runs=timedelta(days=30)), batch=10)


async def claim_some(queue: JobQueue) -> int:
    """A capability is asked for where the type does not promise it."""
    return len(await queue.dequeue_many(5)) if supports(queue, SupportsDequeueMany) else 0


async def serve(open_bundle: Callable[[], AbstractAsyncContextManager[Adapters]]) -> WorkflowService:
    async with run_workflow_service(open_bundle, handle, worker={"concurrency": 2}) as service:
        await service.adapters.job_queue.enqueue_parallel([])
        return service


async def serve_built_in(url: str) -> WorkflowService:
    async with run_workflow_service(lambda: open_adapters(url), handle, sink=publish, migrate=True) as service:
        await service.adapters.ai_call_logger.flush()
        if isinstance(service.adapters, BuiltInPostgresAdapters):
            assert service.adapters.pool_stats.idle >= 0
        built_in: WorkflowService[BuiltInAdapters] = service
        return built_in


def general(adapters: BuiltInAdapters, tx: BuiltInTransaction) -> tuple[Adapters, TransactionAdapters]:
    """Whoever asks for the contract alone may be given a built-in bundle."""
    return adapters, tx


async def in_a_transaction(
    persistence: WorkflowPersistence, work: Callable[[WorkflowPersistence], Awaitable[int]]
) -> int:
    return await persistence.with_transaction(work)
