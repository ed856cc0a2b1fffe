"""The statements of the operations that are Postgres's own; `workflow_adapters.sqlite.operations` has the same."""

from __future__ import annotations

from datetime import datetime

from workflow_adapters.postgres.schema.operations import FINISHED_JOB, UNDATED_JOB
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.statement import Statement


class PostgresOperationStatements:
    """The part of the dialect that the operations use. Jobs are stamped with the database's clock, not with `now`."""

    def queue_stats(self, now: datetime) -> Statement:
        return Statement(
            """
            SELECT status::text, count(*) FROM @job_queue GROUP BY status
            UNION ALL
            SELECT 'due', @ms(min("createdAt")) FROM @job_queue WHERE status = 'PENDING' AND "nextPollAt" IS NULL
            UNION ALL
            SELECT 'due', @ms(min("nextPollAt"))
            FROM @job_queue
            WHERE status = 'PENDING' AND "nextPollAt" <= (SELECT clock_timestamp() AT TIME ZONE 'UTC')
            UNION ALL
            SELECT 'locked', @ms(min("lockedAt")) FROM @job_queue WHERE status = 'RUNNING'
            """
        )

    def requeue_job(self, job_id: str, now: datetime) -> Statement:
        return Statement(
            """
            UPDATE @job_queue
            SET status = 'PENDING', attempt = 0, "workerId" = NULL, "lockedAt" = NULL, "completedAt" = NULL,
                "nextPollAt" = NULL, "updatedAt" = date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC')
            WHERE id = $1 AND status::text IN ('FAILED', 'CANCELLED')
            RETURNING id
            """,
            (job_id,),
        )

    def cancel_job(self, job_id: str, now: datetime) -> Statement:
        return Statement(
            """
            UPDATE @job_queue
            SET status = 'CANCELLED', "completedAt" = clock.now, "updatedAt" = clock.now
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) AS clock
            WHERE id = $1 AND status::text IN ('PENDING', 'SUSPENDED')
            RETURNING id
            """,
            (job_id,),
        )

    def list_jobs(self, where: Conditions, limit: int, *, every_job: bool) -> Statement:
        if every_job:
            # No index has all jobs by their age, but one has those of each status.
            return Statement(
                f"""
                SELECT @job.columns(job)
                FROM unnest(enum_range(NULL::@Status)) AS any_status (value)
                CROSS JOIN LATERAL (
                    SELECT *
                    FROM @job_queue
                    WHERE status = any_status.value{where.text}
                    ORDER BY "createdAt" DESC, id COLLATE "C" DESC
                    LIMIT {where.next_placeholder}::int
                ) AS job
                ORDER BY job."createdAt" DESC, job.id COLLATE "C" DESC
                LIMIT {where.next_placeholder}::int
                """,
                (*where.args, limit),
            )
        return Statement(
            f"""
            SELECT @job.columns
            FROM @job_queue
            WHERE true{where.text}
            ORDER BY "createdAt" DESC, id COLLATE "C" DESC
            LIMIT {where.next_placeholder}::int
            """,
            (*where.args, limit),
        )

    def purge_jobs(self, finished_before: datetime, limit: int) -> Statement:
        return Statement(
            f"""
            WITH old AS MATERIALIZED (
                SELECT locked.id
                FROM (
                    (
                        SELECT id, ({FINISHED_JOB}) AS finished
                        FROM @job_queue
                        WHERE ({FINISHED_JOB}) < $1::text::timestamp
                        ORDER BY ({FINISHED_JOB})
                        LIMIT $2::int
                    )
                    UNION ALL
                    (
                        SELECT id, "updatedAt"
                        FROM @job_queue
                        WHERE ({UNDATED_JOB}) < $1::text::timestamp AND "updatedAt" < $1::text::timestamp
                        ORDER BY ({UNDATED_JOB})
                        LIMIT $2::int
                    )
                    ORDER BY finished
                    LIMIT $2::int
                ) AS oldest
                CROSS JOIN LATERAL (
                    SELECT job.id
                    FROM @job_queue job
                    WHERE job.id = oldest.id
                      AND job.status::text IN ('COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')
                      AND coalesce(job."completedAt", job."updatedAt") < $1::text::timestamp
                    FOR UPDATE SKIP LOCKED
                ) AS locked
            )
            DELETE FROM @job_queue
            WHERE id = ANY (ARRAY(SELECT id FROM old))
            RETURNING id
            """,
            (finished_before, limit),
        )

    def purge_idempotency_keys(self, completed: bool, acquired_before: datetime, limit: int) -> Statement:
        return Statement(
            """
            WITH old AS MATERIALIZED (
                SELECT id
                FROM @idempotency_keys
                WHERE "createdAt" < $2::text::timestamp
                  AND (result->>'__workflowEngineState' IS DISTINCT FROM 'in_progress') = $1::boolean
                ORDER BY "createdAt", id COLLATE "C"
                LIMIT $3::int
                FOR UPDATE SKIP LOCKED
            )
            DELETE FROM @idempotency_keys
            WHERE id IN (SELECT id FROM old)
            RETURNING id
            """,
            (completed, acquired_before, limit),
        )
