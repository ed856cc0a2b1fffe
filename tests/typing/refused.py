"""What the types must refuse; nothing here runs. A line that is refused no more is an error of ``make check``."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncSession

from tests.typing.third_party import handle, publish
from workflow_adapters import (
    Adapters,
    BuiltInAdapters,
    BuiltInJobQueue,
    JobQueue,
    RetryBackoff,
    TransactionAdapters,
    UpdateRunInput,
    open_adapters,
    open_memory,
    open_postgres,
    open_sqlite,
)
from workflow_adapters.runtime import Reaper, Worker, run_workflow_service
from workflow_adapters.runtime.fastapi import workflow_lifespan

SPAN = timedelta(seconds=3)


def open_wrongly() -> None:
    open_sqlite("x.db", readers="four")  # pyright: ignore[reportArgumentType]  # a number
    open_sqlite("x.db", busy_timout=SPAN)  # pyright: ignore[reportCallIssue]  # a slip of the pen
    open_sqlite("x.db", busy_timeout=3)  # pyright: ignore[reportArgumentType]  # no bare numbers of seconds
    open_sqlite("x.db", durability="fast")  # pyright: ignore[reportArgumentType]  # full or normal
    open_sqlite("x.db", max_connections=3)  # pyright: ignore[reportCallIssue]  # that is Postgres
    open_memory(readers=4)  # pyright: ignore[reportCallIssue]  # that is SQLite
    open_memory(store={})  # pyright: ignore[reportArgumentType]  # a MemoryStore
    open_postgres(5432)  # pyright: ignore[reportArgumentType]  # a DSN or a pool
    open_postgres("postgresql://db", statement_timeout=3)  # pyright: ignore[reportArgumentType]  # a span
    open_postgres("postgresql://db", readers=3)  # pyright: ignore[reportCallIssue]  # that is SQLite
    open_adapters("sqlite://", readers="four")  # pyright: ignore[reportArgumentType]  # a number
    open_adapters("sqlite://", colour="red")  # pyright: ignore[reportCallIssue]  # unknown to all backends


def open_rightly(session: AsyncSession, adapters: BuiltInAdapters) -> list[AbstractAsyncContextManager[object]]:
    return [
        open_sqlite("x.db", readers=4, busy_timeout=SPAN, durability="normal"),
        open_memory(clock=None, backoff=None, fairness=None, worker_id=None),
        open_postgres("postgresql://db", max_connections=3, schema="jobs"),
        open_adapters("postgresql://db", pgbouncer=True, backoff=RetryBackoff()),
        adapters.bind_sqlalchemy(session),
    ]


def run_wrongly(queue: JobQueue) -> None:
    Worker(queue, handle, concurency=4)  # pyright: ignore[reportCallIssue]  # a slip of the pen
    Worker(queue, handle, lease=30)  # pyright: ignore[reportArgumentType]  # a span
    Worker("queue", handle)  # pyright: ignore[reportArgumentType]  # no queue
    Reaper(queue, stale_after=30)  # pyright: ignore[reportArgumentType]  # a span
    run_workflow_service(lambda: open_adapters("sqlite://"), handle, worker={"lease": 30})  # pyright: ignore[reportArgumentType]  # a span
    run_workflow_service(lambda: open_adapters("sqlite://"), handle, reaper={"evry": SPAN})  # pyright: ignore[reportArgumentType]  # a slip of the pen
    run_workflow_service(lambda: open_adapters("sqlite://"), handle, relay={"batch": "5"})  # pyright: ignore[reportArgumentType]  # a number
    run_workflow_service(lambda: open_adapters("sqlite://"), handle, snk=publish)  # pyright: ignore[reportCallIssue]  # a slip of the pen
    run_workflow_service(open_adapters("sqlite://"), handle)  # pyright: ignore[reportArgumentType]  # opened once only
    FastAPI(lifespan=workflow_lifespan(lambda: open_adapters("sqlite://"), handle, migrate="yes"))  # pyright: ignore[reportArgumentType]  # a bool


async def use_wrongly(adapters: BuiltInAdapters, tx: TransactionAdapters, general: Adapters, queue: JobQueue) -> None:
    await adapters.job_queue.dequeue_many("5")  # pyright: ignore[reportArgumentType]  # a number
    await adapters.persistence.update_run("r", UpdateRunInput(statas=1))  # pyright: ignore[reportCallIssue]  # a slip of the pen
    assert adapters.pool_stats  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # Postgres alone has one
    await queue.dequeue_many(5)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # no port promises it
    await tx.ai_call_logger.flush()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # nor this
    _whole: BuiltInAdapters = general  # pyright: ignore[reportAssignmentType]  # a third party's bundle has the ports
    _claims: BuiltInJobQueue = queue  # pyright: ignore[reportAssignmentType]  # nor has its queue more
