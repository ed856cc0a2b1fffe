"""The operations: statistics, listings and single jobs. Retention is in `workflow_adapters.sql.retention`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.operations import DEFAULT_PAGE, JobFilters, RunFilters
from workflow_adapters.page_cursor import encode_cursor
from workflow_adapters.ports.operations import Operations
from workflow_adapters.records.job_queue import JobRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.operations import OutboxStats, Page, QueueStats
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.status import Status
from workflow_adapters.sql.columns import ms_to_instant
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.database import Database
from workflow_adapters.sql.outbox_lease import LEASE_HORIZON, LEASE_OFFSET, read_events
from workflow_adapters.sql.results import count, every, first
from workflow_adapters.sql.retention import SqlRetention
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sql.tables import JOB, LOG, OUTBOX, RUN
from workflow_adapters.unset import UNSET


class _Listed(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Listed)


@enforces(Operations)
class SqlOperations(SqlRetention):
    def __init__(self, database: Database, jobs_changed: Callable[[], None]) -> None:
        """`jobs_changed` wakes whoever waits for jobs."""
        super().__init__(database)
        self._jobs_changed = jobs_changed

    async def queue_stats(self) -> QueueStats:
        def operation() -> Operation[QueueStats]:
            rows = yield self._database.dialect.queue_stats(self._database.now())
            numbers = [(str(name), int(number)) for name, number in rows if number is not None]
            return QueueStats(
                by_status={status: dict(numbers).get(status, 0) for status in Status},
                oldest_due_at=_oldest(number for name, number in numbers if name == "due"),
                oldest_locked_at=_oldest(number for name, number in numbers if name == "locked"),
            )

        return await self._database.read(operation)

    async def outbox_stats(self) -> OutboxStats:
        now = self._database.now()

        def operation() -> Operation[OutboxStats]:
            untouched, expired, leased, dead = yield Statement(
                """
                SELECT count(*), @ms(min("occurredAt"))
                FROM @outbox_events
                WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL
                UNION ALL
                SELECT count(*), @ms(min("occurredAt"))
                FROM @outbox_events
                WHERE "publishedAt" > $1::text::timestamp AND "publishedAt" <= $2::text::timestamp AND "dlqAt" IS NULL
                UNION ALL
                SELECT count(*), NULL FROM @outbox_events WHERE "publishedAt" > $2::text::timestamp AND "dlqAt" IS NULL
                UNION ALL
                SELECT count(*), NULL FROM @outbox_events WHERE "dlqAt" IS NOT NULL
                """,
                (now + LEASE_HORIZON, now + LEASE_OFFSET),
            )
            return OutboxStats(
                unpublished=int(untouched[0] or 0) + int(expired[0] or 0),
                oldest_unpublished_at=_oldest(int(row[1]) for row in (untouched, expired) if row[1] is not None),
                leased=int(leased[0] or 0),
                dead=int(dead[0] or 0),
            )

        return await self._database.read(operation)

    async def list_runs(
        self, filters: RunFilters | None = None, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[WorkflowRunRecord]:
        wanted = filters or RunFilters()
        where = Conditions(first=1)
        where.compare(RUN["status"], "=", wanted.status)
        where.compare(RUN["workflow_id"], "=", wanted.workflow_id)
        if (await self._database.facts()).definition_versions:
            where.compare(RUN["definition_version"], "=", wanted.definition_version)
        elif isinstance(wanted.definition_version, str):
            return Page(items=(), next=None)
        where.listed_after(RUN["created_at"], "list_runs", after)
        statement = Statement(
            f"""
            SELECT @run.columns
            FROM @workflow_runs
            WHERE true{where.text}
            ORDER BY "createdAt" DESC, id COLLATE "C" DESC
            LIMIT {where.next_placeholder}::int
            """,
            (*where.args, limit + 1),
        )
        runs = await self._database.read(lambda: every(RUN, statement))
        return _page("list_runs", runs, limit, lambda run: run.created_at)

    async def list_jobs(
        self, filters: JobFilters | None = None, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[JobRecord]:
        wanted = filters or JobFilters()
        where = Conditions(first=1)
        where.compare(JOB["status"], "=", wanted.status)
        where.compare(JOB["workflow_run_id"], "=", wanted.workflow_run_id)
        where.listed_after(JOB["created_at"], "list_jobs", after)
        every_job = wanted.status is UNSET and wanted.workflow_run_id is UNSET
        statement = self._database.dialect.list_jobs(where, limit + 1, every_job=every_job)
        jobs = await self._database.read(lambda: every(JOB, statement))
        return _page("list_jobs", jobs, limit, lambda job: job.created_at)

    async def list_logs(
        self, run_id: str, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[WorkflowLogRecord]:
        where = Conditions(first=1)
        where.compare(LOG["workflow_run_id"], "=", run_id)
        where.listed_after(LOG["created_at"], "list_logs", after)
        statement = Statement(
            f"""
            SELECT @log.columns
            FROM @workflow_logs
            WHERE true{where.text}
            ORDER BY "createdAt" DESC, id COLLATE "C" DESC
            LIMIT {where.next_placeholder}::int
            """,
            (*where.args, limit + 1),
        )
        logs = await self._database.read(lambda: every(LOG, statement))
        return _page("list_logs", logs, limit, lambda log: log.created_at)

    async def list_dead_outbox_events(self, after: str | None = None, limit: int = DEFAULT_PAGE) -> Page[OutboxRecord]:
        where = Conditions(first=1)
        where.listed_after(OUTBOX["dlq_at"], "list_dead_outbox_events", after)
        statement = Statement(
            f"""
            SELECT @outbox.columns
            FROM @outbox_events
            WHERE "dlqAt" IS NOT NULL{where.text}
            ORDER BY "dlqAt" DESC, id COLLATE "C" DESC
            LIMIT {where.next_placeholder}::int
            """,
            (*where.args, limit + 1),
        )

        def operation() -> Operation[list[OutboxRecord]]:
            rows = yield statement
            return read_events(rows, self._database.now())

        events = await self._database.read(operation)
        return _page("list_dead_outbox_events", events, limit, lambda event: event.dlq_at)

    async def get_job(self, job_id: str) -> JobRecord | None:
        statement = Statement("SELECT @job.columns FROM @job_queue WHERE id = $1", (job_id,))
        return await self._database.read(lambda: first(JOB, statement))

    async def requeue_job(self, job_id: str) -> bool:
        statement = self._database.dialect.requeue_job(job_id, self._database.now())
        requeued = bool(await self._database.write(lambda: count(statement), single=True))
        if requeued:
            self._jobs_changed()
        return requeued

    async def cancel_job(self, job_id: str) -> bool:
        statement = self._database.dialect.cancel_job(job_id, self._database.now())
        return bool(await self._database.write(lambda: count(statement), single=True))


def _oldest(instants: Iterable[int]) -> datetime | None:
    return min(map(ms_to_instant, instants), default=None)


def _page(listing: str, found: Sequence[T], limit: int, instant_of: Callable[[T], datetime | None]) -> Page[T]:
    """A page of what was read, one row more than it holds."""
    items = tuple(found[:limit])
    at = instant_of(items[-1]) if len(found) > limit else None
    return Page(items=items, next=None if at is None else encode_cursor(listing, at, items[-1].id))
