"""The acknowledgements of the job queue, fenced and unfenced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.job_queue import RetryBackoff
from workflow_adapters.memory.adapter import MemoryAdapter, later
from workflow_adapters.memory.job_rows import finished, pending
from workflow_adapters.memory.rows import JobRow
from workflow_adapters.ports.job_queue import JobQueue, SupportsCompleteMany, SupportsDefer, SupportsHeartbeat
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome, Status

Change: TypeAlias = Callable[[JobRow, datetime], JobRow]


@enforces(JobQueue, SupportsDefer, SupportsCompleteMany, SupportsHeartbeat)
class MemoryJobAcks(MemoryAdapter):
    _backoff: RetryBackoff

    async def complete(self, job_id: str, fence: JobAckFence | None = None) -> JobAckOutcome:
        return await self._acknowledge(job_id, fence, _completed)

    async def suspend(self, job_id: str, next_poll_at: datetime, fence: JobAckFence | None = None) -> JobAckOutcome:
        def suspended(job: JobRow, now: datetime) -> JobRow:
            return replace(pending(job, now), status=Status.SUSPENDED, next_poll_at=next_poll_at)

        return await self._acknowledge(job_id, fence, suspended)

    async def fail(
        self, job_id: str, error: str, should_retry: bool = False, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        def failed(job: JobRow, now: datetime) -> JobRow:
            if not should_retry or job.attempt >= job.max_attempts:
                return replace(finished(job, Status.FAILED, now), last_error=error)
            due_at = later(now, timedelta(milliseconds=self._backoff.delay_ms(job.attempt)))
            return replace(pending(job, now), next_poll_at=due_at, last_error=error)

        return await self._acknowledge(job_id, fence, failed)

    async def touch_job(self, job_id: str) -> None:
        async with self._session.write() as tables:
            job = tables.jobs.get(job_id)
            if job is not None and job.status is Status.RUNNING:
                tables.jobs.put(_touched(job, self._session.now()))

    async def defer(
        self, job_id: str, next_poll_at: datetime, reason: str, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        def deferred(job: JobRow, now: datetime) -> JobRow:
            attempt = max(0, job.attempt - 1)
            return replace(pending(job, now), next_poll_at=next_poll_at, attempt=attempt, last_error=reason)

        return await self._acknowledge(job_id, fence, deferred)

    async def complete_many(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        return await self._acknowledge_many(claims, _completed)

    async def heartbeat(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        return await self._acknowledge_many(claims, _touched)

    async def _acknowledge(self, job_id: str, fence: JobAckFence | None, change: Change) -> JobAckOutcome:
        async with self._session.write() as tables:
            job = tables.jobs.get(job_id)
            if fence is not None and not _holds(job, fence):
                return JobAckOutcome.SUPERSEDED
            if job is None:
                raise NotFoundError("job", job_id)
            tables.jobs.put(change(job, self._session.now()))
            return JobAckOutcome.ACKNOWLEDGED

    async def _acknowledge_many(self, claims: Sequence[tuple[str, JobAckFence]], change: Change) -> list[JobAckOutcome]:
        async with self._session.write() as tables:
            now = self._session.now()
            outcomes: list[JobAckOutcome] = []
            for job_id, fence in claims:
                job = tables.jobs.get(job_id)
                if job is not None and _holds(job, fence):
                    tables.jobs.put(change(job, now))
                    outcomes.append(JobAckOutcome.ACKNOWLEDGED)
                else:
                    outcomes.append(JobAckOutcome.SUPERSEDED)
            return outcomes


def _holds(job: JobRow | None, fence: JobAckFence) -> bool:
    return (
        job is not None
        and job.status is Status.RUNNING
        and job.started_at == fence.started_at
        and job.attempt == fence.attempt
    )


def _completed(job: JobRow, now: datetime) -> JobRow:
    return finished(job, Status.COMPLETED, now)


def _touched(job: JobRow, now: datetime) -> JobRow:
    return replace(job, locked_at=now, updated_at=now)
