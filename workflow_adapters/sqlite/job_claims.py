"""Which job a claim takes, in one statement that chooses and takes it.

Jobs without a date stand in the order of the claim in an index. Of those with a date that has come there are few, as a
rule, and they are looked through; where there are many, the dated ones are walked in the order of the claim. Each
look names its index: without statistics SQLite would take the one of all PENDING jobs and sort them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sql.tables import CLAIMED_JOB

DEAD_LANE: Final = ""
"""The lane of dead jobs: every claimer that serves anything serves it, so that they are failed and not stranded."""

FEW: Final = 256
"""Up to so many jobs whose date has come are looked through."""

_TAKE: Final[LiteralString] = """
    UPDATE @job_queue
    SET status = CASE wa_lane WHEN '' THEN 'FAILED' ELSE 'RUNNING' END,
        attempt = attempt + (wa_lane <> ''),
        "workerId" = CASE wa_lane WHEN '' THEN "workerId" ELSE $2 END,
        "lockedAt" = CASE wa_lane WHEN '' THEN "lockedAt" ELSE max($1, coalesce("startedAt" + 1, $1)) END,
        "startedAt" = CASE wa_lane WHEN '' THEN "startedAt" ELSE max($1, coalesce("startedAt" + 1, $1)) END,
        "completedAt" = CASE wa_lane WHEN '' THEN $1 ELSE "completedAt" END,
        "updatedAt" = $1,
        "lastError" = CASE
            WHEN wa_lane <> '' THEN "lastError"
            WHEN coalesce(json_type(payload), 'null') = 'null' THEN 'dead job: payload is null'
            WHEN json_type(payload) <> 'object' THEN 'dead job: payload is not a JSON object'
            ELSE 'dead job: payload has no string _workflowId'
        END
"""


def lanes_of(serves: Sequence[ServedDefinition]) -> list[str]:
    """The lanes of the jobs that these serve: pinned to each version, unpinned of each workflow, and dead.

    In the schema, too, the length that keeps a pair apart counts characters; the one on Postgres counts bytes.
    """
    lanes = {DEAD_LANE}
    for served in serves:
        unpinned = f"{len(served.workflow_id)}:{served.workflow_id}"
        lanes |= {unpinned, f"{unpinned}/{served.version}"}
    return sorted(lanes)


def take_next(worker_id: str, now: datetime) -> Statement:
    """Take the next job of all; the row is ``@claimed_job.columns`` and the lane."""
    return Statement(
        f"""
        {_TAKE}
        WHERE status = 'PENDING' AND id = (
            SELECT id
            FROM @job_queue
            WHERE id IN (
                (
                    SELECT id FROM @job_queue INDEXED BY wa_jobs_ready
                    WHERE status = 'PENDING' AND "nextPollAt" IS NULL
                    ORDER BY priority DESC, "createdAt", id
                    LIMIT 1
                ),
                CASE WHEN $3 >= (
                    SELECT count(*) FROM (
                        SELECT 1 FROM @job_queue INDEXED BY wa_jobs_scheduled
                        WHERE status = 'PENDING' AND "nextPollAt" <= $1 LIMIT $3 + 1
                    )
                ) THEN (
                    SELECT id FROM @job_queue INDEXED BY wa_jobs_scheduled
                    WHERE status = 'PENDING' AND "nextPollAt" <= $1
                    ORDER BY priority DESC, "createdAt", id
                    LIMIT 1
                ) ELSE (
                    SELECT id FROM @job_queue INDEXED BY wa_jobs_scheduled_by_priority
                    WHERE status = 'PENDING' AND "nextPollAt" <= $1
                    ORDER BY priority DESC, "createdAt", id
                    LIMIT 1
                ) END
            )
            ORDER BY priority DESC, "createdAt", id
            LIMIT 1
        )
        RETURNING @claimed_job.columns, wa_lane
        """,
        (now, worker_id, FEW),
    )


def take_next_of_lanes(worker_id: str, now: datetime, lanes: Sequence[str]) -> Statement:
    """The same for the jobs of these lanes: the heads of the lanes are compared, so that foreign jobs cost nothing."""
    return Statement(
        f"""
        {_TAKE}
        WHERE status = 'PENDING' AND id = (
            SELECT id
            FROM @job_queue
            WHERE id IN (
                SELECT (
                    SELECT id FROM @job_queue INDEXED BY wa_jobs_ready_by_lane
                    WHERE status = 'PENDING' AND "nextPollAt" IS NULL AND wa_lane = lane.value
                    ORDER BY priority DESC, "createdAt", id
                    LIMIT 1
                )
                FROM json_each($3) AS lane
                UNION ALL
                SELECT CASE WHEN $4 >= (
                    SELECT count(*) FROM (
                        SELECT 1 FROM @job_queue INDEXED BY wa_jobs_scheduled
                        WHERE status = 'PENDING' AND "nextPollAt" <= $1 LIMIT $4 + 1
                    )
                ) THEN (
                    SELECT id FROM @job_queue INDEXED BY wa_jobs_scheduled
                    WHERE status = 'PENDING' AND "nextPollAt" <= $1 AND wa_lane IN (SELECT value FROM json_each($3))
                    ORDER BY priority DESC, "createdAt", id
                    LIMIT 1
                ) ELSE (
                    SELECT id FROM @job_queue INDEXED BY wa_jobs_scheduled_by_priority
                    WHERE status = 'PENDING' AND "nextPollAt" <= $1 AND wa_lane IN (SELECT value FROM json_each($3))
                    ORDER BY priority DESC, "createdAt", id
                    LIMIT 1
                ) END
            )
            ORDER BY priority DESC, "createdAt", id
            LIMIT 1
        )
        RETURNING @claimed_job.columns, wa_lane
        """,
        (now, worker_id, lanes, FEW),
    )


def take(worker_id: str, now: datetime, job_id: str) -> Statement:
    """The same for a job that has been chosen."""
    return Statement(
        f"""
        {_TAKE}
        WHERE status = 'PENDING' AND id = $3
        RETURNING @claimed_job.columns, wa_lane
        """,
        (now, worker_id, job_id),
    )


def first_live(statement: Statement) -> Operation[DequeueResult | None]:
    """Take jobs until one is not dead."""
    while rows := (yield statement):
        *columns, lane = rows[0]
        if lane != DEAD_LANE:
            return CLAIMED_JOB.read(columns)
    return None
