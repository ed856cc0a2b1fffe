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
from workflow_adapters.memory.table import Place
from workflow_adapters.page_cursor import decode_cursor, encode_cursor
from workflow_adapters.ports.operations import Operations
from workflow_adapters.records.job_queue import JobRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.operations import OutboxStats, Page, QueueStats
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.status import Status
from workflow_adapters.unset import UNSET

R = TypeVar("R", WorkflowRunRecord, JobRecord, WorkflowLogRecord, OutboxRecord)


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
            runs = (
                run
                for run in tables.runs.by_age.descend(True, _place("list_runs", after))
                if wanted.status in (UNSET, run.status)
                and wanted.workflow_id in (UNSET, run.workflow_id)
                and wanted.definition_version in (UNSET, run.definition_version)
            )
            return _page([detached(run) for run in islice(runs, limit + 1)], limit, "list_runs", _age)

    async def list_jobs(
        self, filters: JobFilters | None = None, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[JobRecord]:
        wanted = filters or JobFilters()
        async with self._session.read() as tables:
            jobs = (
                job
                for job in tables.jobs.by_age.descend(True, _place("list_jobs", after))
                if wanted.status in (UNSET, job.status) and wanted.workflow_run_id in (UNSET, job.workflow_run_id)
            )
            return _page([job_record(job) for job in islice(jobs, limit + 1)], limit, "list_jobs", _age)

    async def list_logs(
        self, run_id: str, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[WorkflowLogRecord]:
        async with self._session.read() as tables:
            logs = tables.logs.by_run.descend(run_id, _place("list_logs", after))
            return _page([detached(log) for log in islice(logs, limit + 1)], limit, "list_logs", _age)

    async def list_dead_outbox_events(self, after: str | None = None, limit: int = DEFAULT_PAGE) -> Page[OutboxRecord]:
        listing = "list_dead_outbox_events"
        async with self._session.read() as tables:
            dead = tables.outbox.dead.descend(True, _place(listing, after))
            events = [detached(row.event) for row in islice(dead, limit + 1)]
            return _page(events, limit, listing, lambda event: event.dlq_at or event.occurred_at)

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


def _age(record: WorkflowRunRecord | JobRecord | WorkflowLogRecord) -> datetime:
    return record.created_at


def _place(listing: str, after: str | None) -> Place | None:
    """Where the page before ended in an index by instant."""
    return None if after is None else decode_cursor(listing, after)


def _page(records: list[R], limit: int, listing: str, instant: Callable[[R], datetime]) -> Page[R]:
    """A page of what was read, which is one more than the page holds if there is more."""
    items = tuple(records[:limit])
    more = len(records) > limit
    return Page(items=items, next=encode_cursor(listing, instant(items[-1]), items[-1].id) if more else None)
