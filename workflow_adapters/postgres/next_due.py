"""When the next job is due."""

from __future__ import annotations

from workflow_adapters.postgres.schema.job_queue import DUE_AT, READY
from workflow_adapters.sql.statement import Statement


def next_due_job(*, owned: bool) -> Statement:
    """Milliseconds until the next job is due, 0 or less where one is; NULL where there is none."""
    if not owned:
        return Statement(
            """
            SELECT CASE
                WHEN EXISTS (SELECT FROM @job_queue WHERE status = 'PENDING' AND "nextPollAt" IS NULL) THEN 0
                ELSE (
                    SELECT (extract(epoch FROM "nextPollAt" - (clock_timestamp() AT TIME ZONE 'UTC')) * 1000)::bigint
                    FROM @job_queue
                    WHERE status = 'PENDING' AND "nextPollAt" IS NOT NULL
                    ORDER BY "nextPollAt"
                    LIMIT 1
                )
            END
            """
        )
    # Not EXISTS, which drops the order and with it the index.
    return Statement(
        f"""
        SELECT coalesce(
            (SELECT 0 FROM @job_queue WHERE ({READY}) IS NOT NULL ORDER BY ({READY}) DESC LIMIT 1),
            (
                SELECT (extract(epoch FROM "nextPollAt" - (clock_timestamp() AT TIME ZONE 'UTC')) * 1000)::bigint
                FROM @job_queue
                WHERE ({DUE_AT}) IS NOT NULL
                ORDER BY ({DUE_AT})
                LIMIT 1
            )
        )
        """
    )
