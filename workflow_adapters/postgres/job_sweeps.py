"""Changes to many jobs at once: the two lease sweeps, cancelling and deleting.

A sweep passes by jobs that are locked, so it neither waits for an acknowledgement in flight nor undoes it. Cancelling
and deleting wait, and lock in the order of stage ids, as enqueueing does. They then write by run and stage, not by the
ids they locked: the job they waited for may have been replaced by a new one of another id.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.job_queue import DEFAULT_STALE_AFTER, LEASE_ABSOLUTE_CAP, LEASE_HEARTBEAT_LOST
from workflow_adapters.ports.job_queue import JobQueue, SupportsAbsoluteLease
from workflow_adapters.postgres.job_port import JobPort
from workflow_adapters.sql.statement import Operation, Statement

_MILLISECOND: Final = timedelta(milliseconds=1)
# A longer span makes no difference to any lease, and stays within the range of a timestamp.
_LONGEST_SPAN: Final = timedelta(days=365_250)


@enforces(JobQueue, SupportsAbsoluteLease)
class PostgresJobSweeps(JobPort):
    async def delete_by_run_and_stages(self, run_id: str, stage_ids: Sequence[str]) -> int:
        if not stage_ids:
            return 0
        return await self._count(
            Statement(
                """
                WITH locked AS MATERIALIZED (
                    SELECT id
                    FROM @job_queue
                    WHERE "workflowRunId" = $1 AND "stageId" = ANY ($2::text[])
                    ORDER BY "stageId" COLLATE "C"
                    FOR UPDATE
                ), deleted AS (
                    DELETE FROM @job_queue
                    WHERE "workflowRunId" = $1 AND "stageId" = ANY ($2::text[]) AND (SELECT count(*) FROM locked) > 0
                    RETURNING id
                )
                SELECT count(*) FROM deleted
                """,
                (run_id, stage_ids),
            )
        )

    async def cancel_by_run(self, run_id: str) -> int:
        return await self._count(
            Statement(
                """
                WITH locked AS MATERIALIZED (
                    SELECT id
                    FROM @job_queue
                    WHERE "workflowRunId" = $1 AND status::text IN ('PENDING', 'SUSPENDED')
                    ORDER BY "stageId" COLLATE "C"
                    FOR NO KEY UPDATE
                ), cancelled AS (
                    UPDATE @job_queue
                    SET status = 'CANCELLED', "completedAt" = clock.now, "updatedAt" = clock.now
                    FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
                    WHERE "workflowRunId" = $1 AND status::text IN ('PENDING', 'SUSPENDED')
                      AND (SELECT count(*) FROM locked) > 0
                    RETURNING id
                )
                SELECT count(*) FROM cancelled
                """,
                (run_id,),
            )
        )

    async def release_stale_jobs(self, stale_after: timedelta = DEFAULT_STALE_AFTER, fail_spent: bool = False) -> int:
        released = await self._count(
            Statement(
                """
                WITH clock AS MATERIALIZED (
                    SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now
                ), stale AS MATERIALIZED (
                    SELECT id
                    FROM @job_queue
                    WHERE status = 'RUNNING'
                      AND "lockedAt" < (SELECT now FROM clock) - $1::bigint * interval '1 millisecond'
                    FOR NO KEY UPDATE SKIP LOCKED
                ), released AS (
                    UPDATE @job_queue
                    SET status = CASE WHEN $2::boolean AND attempt >= "maxAttempts" THEN 'FAILED' ELSE 'PENDING'
                            END::@Status,
                        "workerId" = CASE WHEN $2::boolean AND attempt >= "maxAttempts" THEN "workerId" END,
                        "lockedAt" = CASE WHEN $2::boolean AND attempt >= "maxAttempts" THEN "lockedAt" END,
                        "completedAt" = CASE WHEN $2::boolean AND attempt >= "maxAttempts" THEN clock.now
                            ELSE "completedAt" END,
                        "lastError" = $3,
                        "updatedAt" = clock.now
                    FROM clock
                    WHERE id = ANY (ARRAY(SELECT id FROM stale))
                    RETURNING id
                )
                SELECT count(*) FROM released
                """,
                (_ms(stale_after), fail_spent, f"{LEASE_HEARTBEAT_LOST}: no heartbeat for more than {stale_after}"),
            )
        )
        if released:
            self._came_back(None)
        return released

    async def expire_runaway_jobs(self, absolute_timeout: timedelta) -> int:
        expired = await self._count(
            Statement(
                """
                WITH clock AS MATERIALIZED (
                    SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now
                ), runaway AS MATERIALIZED (
                    SELECT id
                    FROM @job_queue
                    WHERE status = 'RUNNING'
                      AND "startedAt" < (SELECT now FROM clock) - $1::bigint * interval '1 millisecond'
                    FOR NO KEY UPDATE SKIP LOCKED
                ), expired AS (
                    UPDATE @job_queue
                    SET status = 'FAILED', "completedAt" = clock.now, "lastError" = $2, "updatedAt" = clock.now
                    FROM clock
                    WHERE id = ANY (ARRAY(SELECT id FROM runaway))
                    RETURNING id
                )
                SELECT count(*) FROM expired
                """,
                (
                    _ms(absolute_timeout),
                    f"{LEASE_ABSOLUTE_CAP}: still running after more than {absolute_timeout}",
                ),
            )
        )
        if expired and self._settings.fairness is not None:
            self._came_back(None)
        return expired

    async def _count(self, statement: Statement) -> int:
        def operation() -> Operation[int]:
            ((number,),) = yield statement
            return int(number or 0)

        return await self._database.write(operation, single=True)


def _ms(span: timedelta) -> int:
    return max(-_LONGEST_SPAN, min(span, _LONGEST_SPAN)) // _MILLISECOND
