"""Changes to many jobs at once: the two lease sweeps, cancelling and deleting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.job_queue import DEFAULT_STALE_AFTER, LEASE_ABSOLUTE_CAP, LEASE_HEARTBEAT_LOST
from workflow_adapters.ports.job_queue import JobQueue, SupportsAbsoluteLease
from workflow_adapters.sql.results import count
from workflow_adapters.sql.statement import Statement
from workflow_adapters.sqlite.job_acks import SqliteJobAcks
from workflow_adapters.sqlite.spans import earlier_ms


@enforces(JobQueue, SupportsAbsoluteLease)
class SqliteJobSweeps(SqliteJobAcks):
    async def delete_by_run_and_stages(self, run_id: str, stage_ids: Sequence[str]) -> int:
        return await self._change(
            Statement(
                """
                DELETE FROM @job_queue
                WHERE "workflowRunId" = $1 AND "stageId" = ANY($2::text[])
                RETURNING id
                """,
                (run_id, stage_ids),
            )
        )

    async def cancel_by_run(self, run_id: str) -> int:
        return await self._change(
            Statement(
                """
                UPDATE @job_queue
                SET status = 'CANCELLED', "completedAt" = $2, "updatedAt" = $2
                WHERE "workflowRunId" = $1 AND status IN ('PENDING', 'SUSPENDED')
                RETURNING id
                """,
                (run_id, self._database.now()),
            )
        )

    async def release_stale_jobs(self, stale_after: timedelta = DEFAULT_STALE_AFTER, fail_spent: bool = False) -> int:
        now = self._database.now()
        released = await self._change(
            Statement(
                """
                UPDATE @job_queue
                SET status = CASE WHEN $3 AND attempt >= "maxAttempts" THEN 'FAILED' ELSE 'PENDING' END,
                    "completedAt" = CASE WHEN $3 AND attempt >= "maxAttempts" THEN $1 ELSE "completedAt" END,
                    "workerId" = CASE WHEN $3 AND attempt >= "maxAttempts" THEN "workerId" END,
                    "lockedAt" = CASE WHEN $3 AND attempt >= "maxAttempts" THEN "lockedAt" END,
                    "lastError" = $4,
                    "updatedAt" = $1
                WHERE status = 'RUNNING' AND "lockedAt" < $2
                RETURNING id
                """,
                (
                    now,
                    earlier_ms(now, stale_after),
                    fail_spent,
                    f"{LEASE_HEARTBEAT_LOST}: no heartbeat for more than {stale_after}",
                ),
            )
        )
        self._signal.changed()
        return released

    async def expire_runaway_jobs(self, absolute_timeout: timedelta) -> int:
        now = self._database.now()
        expired = await self._change(
            Statement(
                """
                UPDATE @job_queue
                SET status = 'FAILED', "completedAt" = $1, "updatedAt" = $1, "lastError" = $3
                WHERE status = 'RUNNING' AND "startedAt" < $2
                RETURNING id
                """,
                (
                    now,
                    earlier_ms(now, absolute_timeout),
                    f"{LEASE_ABSOLUTE_CAP}: still running after more than {absolute_timeout}",
                ),
            )
        )
        self._signal.changed()
        return expired

    async def _change(self, statement: Statement) -> int:
        return await self._database.write(lambda: count(statement), single=True)
