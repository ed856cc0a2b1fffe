"""Contract of the operations: what a worker runtime, a command line and a console ask. Optional for third parties."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, runtime_checkable

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.operations import DEFAULT_PAGE, JobFilters, RunFilters, page_limit
from workflow_adapters.records.job_queue import JobRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.operations import OutboxStats, Page, QueueStats
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.validation import boolean, instance, instant, key, non_negative, optional, prefix

# A cursor holds an id of up to 800 bytes and is therefore longer than a key may be.
_after = optional(prefix)


@runtime_checkable
class Operations(Protocol):
    """Listings are newest first (created_at, then id, both descending), in pages of at most 1,000.

    `after` is the `next` of an earlier page, opaque; one that is not such a cursor is an InvalidValueError. The purges
    are one statement each, delete at most `limit` rows, never wait for a locked row and return the count.
    """

    async def queue_stats(self) -> QueueStats:
        """Jobs by status and the oldest due and locked instants."""
        ...

    async def outbox_stats(self) -> OutboxStats:
        """Unpublished, leased and dead events."""
        ...

    @checked(filters=optional(instance(RunFilters)), after=_after, limit=page_limit)
    async def list_runs(
        self, filters: RunFilters | None = None, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[WorkflowRunRecord]:
        """Runs, newest first."""
        ...

    @checked(filters=optional(instance(JobFilters)), after=_after, limit=page_limit)
    async def list_jobs(
        self, filters: JobFilters | None = None, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[JobRecord]:
        """Jobs, newest first."""
        ...

    @checked(run_id=key, after=_after, limit=page_limit)
    async def list_logs(
        self, run_id: str, after: str | None = None, limit: int = DEFAULT_PAGE
    ) -> Page[WorkflowLogRecord]:
        """Log lines of a run, newest first."""
        ...

    @checked(after=_after, limit=page_limit)
    async def list_dead_outbox_events(self, after: str | None = None, limit: int = DEFAULT_PAGE) -> Page[OutboxRecord]:
        """Dead letters, by dlq_at, then id, newest first."""
        ...

    @checked(job_id=key)
    async def get_job(self, job_id: str) -> JobRecord | None:
        """The job, or None."""
        ...

    @checked(job_id=key)
    async def requeue_job(self, job_id: str) -> bool:
        """FAILED or CANCELLED to PENDING, due at once, attempt 0; False for a job in another status or unknown."""
        ...

    @checked(job_id=key)
    async def cancel_job(self, job_id: str) -> bool:
        """PENDING or SUSPENDED to CANCELLED; False when the job is in neither status or unknown."""
        ...

    @checked(finished_before=instant, limit=non_negative)
    async def purge_jobs(self, finished_before: datetime, limit: int) -> int:
        """Delete jobs in a terminal status with completed_at (updated_at where null) before the instant."""
        ...

    @checked(published_before=instant, limit=non_negative)
    async def purge_outbox_events(self, published_before: datetime, limit: int) -> int:
        """Delete published events (not leased, not dead) with published_at before the instant."""
        ...

    @checked(dead_before=instant, limit=non_negative)
    async def purge_dead_outbox_events(self, dead_before: datetime, limit: int) -> int:
        """Delete dead letters with dlq_at before the instant."""
        ...

    @checked(completed=boolean, acquired_before=instant, limit=non_negative)
    async def purge_idempotency_keys(self, completed: bool, acquired_before: datetime, limit: int) -> int:
        """Delete completed keys, or those in progress, acquired before the instant."""
        ...

    @checked(created_before=instant, limit=non_negative)
    async def purge_ai_calls(self, created_before: datetime, limit: int) -> int:
        """Delete logged calls created before the instant."""
        ...
