"""The statements of the operations that are SQLite's own; `workflow_adapters.postgres.operations` has the same."""

from __future__ import annotations

from datetime import datetime

from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.statement import Statement


class SqliteOperationStatements:
    """The part of the dialect that the operations use."""

    def queue_stats(self, now: datetime) -> Statement:
        return Statement(
            """
            SELECT status, count(*) FROM @job_queue GROUP BY status
            UNION ALL
            SELECT 'due', min("createdAt") FROM @job_queue WHERE status = 'PENDING' AND "nextPollAt" IS NULL
            UNION ALL
            SELECT 'due', min("nextPollAt") FROM @job_queue INDEXED BY wa_jobs_scheduled
            WHERE status = 'PENDING' AND "nextPollAt" <= $1
            UNION ALL
            SELECT 'locked', min("lockedAt") FROM @job_queue INDEXED BY wa_jobs_running WHERE status = 'RUNNING'
            """,
            (now,),
        )

    def requeue_job(self, job_id: str, now: datetime) -> Statement:
        return Statement(
            """
            UPDATE @job_queue
            SET status = 'PENDING', attempt = 0, "workerId" = NULL, "lockedAt" = NULL, "completedAt" = NULL,
                "nextPollAt" = NULL, "updatedAt" = $2
            WHERE id = $1 AND status IN ('FAILED', 'CANCELLED')
            RETURNING id
            """,
            (job_id, now),
        )

    def cancel_job(self, job_id: str, now: datetime) -> Statement:
        return Statement(
            """
            UPDATE @job_queue
            SET status = 'CANCELLED', "completedAt" = $2, "updatedAt" = $2
            WHERE id = $1 AND status IN ('PENDING', 'SUSPENDED')
            RETURNING id
            """,
            (job_id, now),
        )

    def list_jobs(self, where: Conditions, limit: int, *, every_job: bool) -> Statement:
        return Statement(
            f"""
            SELECT @job.columns
            FROM @job_queue
            WHERE true{where.text}
            ORDER BY "createdAt" DESC, id DESC
            LIMIT {where.next_placeholder}
            """,
            (*where.args, limit),
        )

    def purge_jobs(self, finished_before: datetime, limit: int) -> Statement:
        return Statement(
            """
            DELETE FROM @job_queue
            WHERE id IN (
                SELECT id
                FROM @job_queue INDEXED BY wa_jobs_finished
                WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')
                  AND coalesce("completedAt", "updatedAt") < $1
                ORDER BY coalesce("completedAt", "updatedAt"), id
                LIMIT $2
            )
            RETURNING id
            """,
            (finished_before, limit),
        )

    def purge_idempotency_keys(self, completed: bool, acquired_before: datetime, limit: int) -> Statement:
        return Statement(
            """
            DELETE FROM @idempotency_keys
            WHERE id IN (
                SELECT id
                FROM @idempotency_keys
                WHERE "createdAt" < $2
                  AND (coalesce(json_extract(result, '$.__workflowEngineState'), '') <> 'in_progress') = $1
                ORDER BY "createdAt", id
                LIMIT $3
            )
            RETURNING id
            """,
            (completed, acquired_before, limit),
        )
