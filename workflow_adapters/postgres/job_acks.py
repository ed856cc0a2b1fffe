"""The acknowledgements of the job queue.

A fence is checked by the statement that writes. Jobs are found by primary key: ``status::text`` fits no index on
status, which the server takes for the primary key's equal where statistics say that hardly any job is RUNNING.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.job_queue import RetryBackoff
from workflow_adapters.ports.job_queue import JobQueue, SupportsDefer
from workflow_adapters.postgres.job_port import JobPort
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.sql.results import none
from workflow_adapters.sql.statement import Argument, Operation, Statement
from workflow_adapters.validation import INT32_MAX

# Longer than the calendar, and within the range of a timestamp.
_LONGEST_DELAY_MS: Final = 9000 * 365 * 86_400_000


@enforces(JobQueue, SupportsDefer)
class PostgresJobAcks(JobPort):
    async def complete(self, job_id: str, fence: JobAckFence | None = None) -> JobAckOutcome:
        statement = Statement(
            """
            UPDATE @job_queue
            SET status = 'COMPLETED', "completedAt" = clock.now, "updatedAt" = clock.now
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE id = $1 AND (
                $2::text IS NULL
                OR status::text = 'RUNNING' AND "startedAt" = $2::text::timestamp AND attempt = $3::int
            )
            RETURNING id
            """,
            (job_id, *_fence_arguments(fence)),
        )
        return await self._acknowledge(job_id, fence, statement)

    async def suspend(self, job_id: str, next_poll_at: datetime, fence: JobAckFence | None = None) -> JobAckOutcome:
        statement = Statement(
            """
            UPDATE @job_queue
            SET status = 'SUSPENDED', "nextPollAt" = $4::text::timestamp, "workerId" = NULL, "lockedAt" = NULL,
                "updatedAt" = clock.now
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE id = $1 AND (
                $2::text IS NULL
                OR status::text = 'RUNNING' AND "startedAt" = $2::text::timestamp AND attempt = $3::int
            )
            RETURNING id
            """,
            (job_id, *_fence_arguments(fence), next_poll_at),
        )
        return await self._acknowledge(job_id, fence, statement)

    async def fail(
        self, job_id: str, error: str, should_retry: bool = False, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        statement = Statement(
            """
            UPDATE @job_queue
            SET status = CASE WHEN $5::boolean AND attempt < "maxAttempts" THEN 'PENDING' ELSE 'FAILED' END::@Status,
                "nextPollAt" = CASE
                    WHEN NOT ($5::boolean AND attempt < "maxAttempts") THEN "nextPollAt"
                    ELSE least(
                        timestamp '9999-12-31 23:59:59.999',
                        clock.now + interval '1 millisecond' * CASE
                            WHEN attempt > $9::int THEN $8::float8
                            ELSE floor($6::float8 * power($7::float8, attempt))
                        END
                    )
                END,
                "workerId" = CASE WHEN NOT ($5::boolean AND attempt < "maxAttempts") THEN "workerId" END,
                "lockedAt" = CASE WHEN NOT ($5::boolean AND attempt < "maxAttempts") THEN "lockedAt" END,
                "completedAt" = CASE
                    WHEN $5::boolean AND attempt < "maxAttempts" THEN "completedAt" ELSE clock.now
                END,
                "lastError" = $4,
                "updatedAt" = clock.now
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE id = $1 AND (
                $2::text IS NULL
                OR status::text = 'RUNNING' AND "startedAt" = $2::text::timestamp AND attempt = $3::int
            )
            RETURNING id
            """,
            (job_id, *_fence_arguments(fence), error, should_retry, *_delay_arguments(self._settings.backoff)),
        )
        outcome = await self._acknowledge(job_id, fence, statement)
        if should_retry and outcome is JobAckOutcome.ACKNOWLEDGED:
            self._came_back(datetime.now(UTC) + self._settings.backoff.base)
        return outcome

    async def touch_job(self, job_id: str) -> None:
        statement = Statement(
            """
            UPDATE @job_queue
            SET "lockedAt" = clock.now, "updatedAt" = clock.now
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE id = $1 AND status::text = 'RUNNING'
            """,
            (job_id,),
        )
        await self._database.write(lambda: none(statement), single=True)

    async def defer(
        self, job_id: str, next_poll_at: datetime, reason: str, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        statement = Statement(
            """
            UPDATE @job_queue
            SET status = 'PENDING', "nextPollAt" = $4::text::timestamp, attempt = greatest(attempt - 1, 0),
                "workerId" = NULL, "lockedAt" = NULL, "lastError" = $5, "updatedAt" = clock.now
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE id = $1 AND (
                $2::text IS NULL
                OR status::text = 'RUNNING' AND "startedAt" = $2::text::timestamp AND attempt = $3::int
            )
            RETURNING id
            """,
            (job_id, *_fence_arguments(fence), next_poll_at, reason),
        )
        outcome = await self._acknowledge(job_id, fence, statement)
        if outcome is JobAckOutcome.ACKNOWLEDGED:
            self._came_back(next_poll_at)
        return outcome

    async def _acknowledge(self, job_id: str, fence: JobAckFence | None, statement: Statement) -> JobAckOutcome:
        def operation() -> Operation[JobAckOutcome]:
            if (yield statement):
                return JobAckOutcome.ACKNOWLEDGED
            if fence is None:
                raise NotFoundError("job", job_id)
            return JobAckOutcome.SUPERSEDED

        outcome = await self._database.write(operation, single=True)
        if outcome is JobAckOutcome.ACKNOWLEDGED:
            self._ended([job_id])
        return outcome


def _fence_arguments(fence: JobAckFence | None) -> tuple[Argument, Argument]:
    return (None, None) if fence is None else (fence.started_at, fence.attempt)


def _delay_arguments(backoff: RetryBackoff) -> tuple[Argument, ...]:
    """base, factor, cap, and the last attempt whose delay is below the cap: of a later one the power may overflow."""
    cap = min(backoff.cap_ms, _LONGEST_DELAY_MS)
    if backoff.base_ms == 0:
        return 0, 1.0, 0, INT32_MAX
    if backoff.base_ms >= cap:
        return backoff.base_ms, backoff.factor, cap, -1
    if backoff.factor == 1:
        return backoff.base_ms, 1.0, cap, INT32_MAX
    last = int(math.log(cap / backoff.base_ms) / math.log(backoff.factor))
    return backoff.base_ms, backoff.factor, cap, last
