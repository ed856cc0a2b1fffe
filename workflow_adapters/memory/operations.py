"""The operations: statistics, listings by page, and changes to single jobs. The purges are in `purges`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TypeVar

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.operations import DEFAULT_PAGE, JobFilters, RunFilters
from workflow_adapters.memory.job_rows import finished, is_due, job_record, pending
from workflow_adapters.memory.outbox_selection import is_leased
from workflow_adapters.memory.purges import MemoryPurges
from workflow_adapters.memory.rows import JobRow, detached
from workflow_adapters.page_cursor import decode_cursor, encode_cursor
from workflow_adapters.ports.operations import Operations
from workflow_adapters.records.job_queue import JobRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.operations import OutboxStats, Page, QueueStats
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.status import Status
from workflow_adapters.unset import UNSET

R = TypeVar("R")
T = TypeVar("T")


@enforces(Operations)
class MemoryOperations(MemoryPurges):
    async def queue_stats(self) -> QueueStats:
        async with self._session.read() as tables:
            now, jobs = self._session.now(), tables.jobs.by_status
            due = (job.next_poll_at or job.created_at for job in jobs.iterate(Status.PENDING) if is_due(job, now))
            locked = (job.locked_at for job in jobs.iterate(Status.RUNNING) if job.locked_at is not None)
            return QueueStats(
                by_status={status: jobs.count(status) for status in Status},
                oldest_due_at=min(due, default=None),
                oldest_locked_at=min(locked, default=None),
            )

    async def outbox_stats(self) -> OutboxStats:
        async with self._session.read() as tables:
            now, outbox = self._session.now(), tables.outbox
            waiting = [row for run_id in outbox.unpublished.buckets() for row in outbox.unpublished.iterate(run_id)]
            unpublished = [row for row in waiting if not is_leased(row, now)]
            return OutboxStats(
                unpublished=len(unpublished),
                oldest_unpublished_at=min((row.event.occurred_at for row in unpublished), default=None),
                leased=len(waiting) - len(unpublished),
                dead=outbox.dead.count(True),
            )

    async def list_runs(
        self, filters: RunFilters | None = None, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[WorkflowRunRecord]:
        wanted = filters or RunFilters()
        async with self._session.read() as tables:
            runs = [
                run
                for run in tables.runs.by_age.iterate(True)
                if wanted.status in (UNSET, run.status)
                and wanted.workflow_id in (UNSET, run.workflow_id)
                and wanted.definition_version in (UNSET, run.definition_version)
            ]
            return _page("list_runs", runs, _age, detached, after, limit)

    async def list_jobs(
        self, filters: JobFilters | None = None, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[JobRecord]:
        wanted = filters or JobFilters()
        async with self._session.read() as tables:
            jobs = [
                job
                for job in tables.jobs.by_age.iterate(True)
                if wanted.status in (UNSET, job.status) and wanted.workflow_run_id in (UNSET, job.workflow_run_id)
            ]
            return _page("list_jobs", jobs, _age, job_record, after, limit)

    async def list_logs(
        self, run_id: str, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[WorkflowLogRecord]:
        async with self._session.read() as tables:
            return _page("list_logs", tables.logs.by_run[run_id], _age, detached, after, limit)

    async def list_dead_outbox_events(self, after: str | None = None, limit: int = DEFAULT_PAGE) -> Page[OutboxRecord]:
        def position(event: OutboxRecord) -> tuple[datetime, str]:
            return event.dlq_at or event.occurred_at, event.id

        async with self._session.read() as tables:
            dead = [row.event for row in tables.outbox.dead[True]]
            return _page("list_dead_outbox_events", dead, position, detached, after, limit)

    async def get_job(self, job_id: str) -> JobRecord | None:
        async with self._session.read() as tables:
            job = tables.jobs.get(job_id)
            return None if job is None else job_record(job)

    async def requeue_job(self, job_id: str) -> bool:
        def requeued(job: JobRow, now: datetime) -> JobRow:
            return replace(pending(job, now), attempt=0, next_poll_at=None, completed_at=None)

        return await self._change_job(job_id, (Status.FAILED, Status.CANCELLED), requeued)

    async def cancel_job(self, job_id: str) -> bool:
        def cancelled(job: JobRow, now: datetime) -> JobRow:
            return finished(job, Status.CANCELLED, now)

        return await self._change_job(job_id, (Status.PENDING, Status.SUSPENDED), cancelled)

    async def _change_job(
        self, job_id: str, only: tuple[Status, ...], change: Callable[[JobRow, datetime], JobRow]
    ) -> bool:
        async with self._session.write() as tables:
            job = tables.jobs.get(job_id)
            if job is None or job.status not in only:
                return False
            tables.jobs.put(change(job, self._session.now()))
            return True


def _age(row: WorkflowRunRecord | JobRow | WorkflowLogRecord) -> tuple[datetime, str]:
    return row.created_at, row.id


def _page(
    listing: str,
    rows: list[R],
    position: Callable[[R], tuple[datetime, str]],
    record: Callable[[R], T],
    after: str | None,
    limit: int,
) -> Page[T]:
    """The newest `limit` of `rows`, which come oldest first, that are older than the cursor."""
    end = None if after is None else decode_cursor(listing, after)
    older = (row for row in reversed(rows) if end is None or position(row) < end)
    page = list(islice(older, limit))
    more = next(older, None) is not None
    return Page(
        items=tuple(record(row) for row in page),
        next=encode_cursor(listing, *position(page[-1])) if more else None,
    )
