"""Claims on a schema of ours: one statement that looks for candidates, locks as many as are wanted, and takes them.

A claim is a look and then what all claims do. The look makes `candidate`, jobs in the order in which they are to be
tried; how it finds them is what tells the claims apart. It reads bounded stretches of indexes, so that its cost does
not depend on the depth of the queue. Candidates are then locked one after the other by primary key. Those that somebody
else holds are passed by, and `picked` stops at the limit, so nothing is locked that is not taken.

The arguments of all claims: $1 worker id, $2 limit, $3 lookahead (how many candidates to tell of besides), and from $4
on the look's own. What looks odd keeps the server's planner from harm:

- ``LIMIT (SELECT $2::int)`` and ``unnest((SELECT $5::text[]))`` hide the value. A plan for any value then costs what a
  plan for this one does, so the server keeps the one it has and does not plan each claim anew.
- ``status::text``, where a job is looked up by id, fits no index on status. Statistics often say that a status has
  hardly any rows, and such an index is then taken for the primary key's equal.
- ``wa_lane >= x AND wa_lane <= x`` keeps the lane a part of the order that is asked for, which only its own index has.
- ``id = ANY (ARRAY(SELECT …))`` has the update find its jobs by primary key; a join may read the whole table.
- Literal limits around hidden ones keep estimates low, and with them the server from compiling the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, LiteralString

from workflow_adapters.sql.statement import Statement

CLOCK: Final[LiteralString] = """
    clock AS MATERIALIZED (
        SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now
    )"""

# Conditions are checked again on the row as it is when it is locked. The start of a claim is later than that of the
# job's last one, so that it names this claim for ever.
LOCKED: Final[LiteralString] = """(
            SELECT
                j.id,
                greatest((SELECT now FROM clock), j."startedAt" + interval '1 millisecond') AS start,
                CASE
                    WHEN jsonb_typeof(j.payload -> '_workflowId') = 'string' THEN NULL
                    WHEN coalesce(jsonb_typeof(j.payload), 'null') = 'null' THEN 'dead job: payload is null'
                    WHEN jsonb_typeof(j.payload) <> 'object' THEN 'dead job: payload is not a JSON object'
                    ELSE 'dead job: payload has no string _workflowId'
                END AS dead
            FROM @job_queue j
            WHERE j.id = candidate.id AND j.status::text = 'PENDING'
              AND (j."nextPollAt" IS NULL OR j."nextPollAt" <= (SELECT now FROM clock))
            FOR NO KEY UPDATE SKIP LOCKED
        ) locked"""

CLAIMED: Final[LiteralString] = """
    claimed (id, run, stage, priority, attempt, max_attempts, payload, started, status, created) AS (
        UPDATE @job_queue job
        SET status = CASE WHEN picked.dead IS NULL THEN 'RUNNING' ELSE 'FAILED' END::@Status,
            attempt = CASE WHEN picked.dead IS NULL THEN job.attempt + 1 ELSE job.attempt END,
            "workerId" = CASE WHEN picked.dead IS NULL THEN $1 ELSE job."workerId" END,
            "lockedAt" = CASE WHEN picked.dead IS NULL THEN picked.start ELSE job."lockedAt" END,
            "startedAt" = CASE WHEN picked.dead IS NULL THEN picked.start ELSE job."startedAt" END,
            "completedAt" = CASE WHEN picked.dead IS NULL THEN job."completedAt" ELSE clock.now END,
            "lastError" = coalesce(picked.dead, job."lastError"),
            "updatedAt" = clock.now
        FROM clock, picked
        WHERE job.id = picked.id AND job.id = ANY (ARRAY(SELECT id FROM picked))
        RETURNING @claimed_job.columns(job), job.status::text, job."createdAt"
    )"""

# Candidates to tell of; those that were taken are among them. Where nothing was taken there is at least one, if any was
# there.
SEEN: Final[LiteralString] = """
    seen AS (
        SELECT id, priority, "createdAt", turn
        FROM candidate
        LIMIT (SELECT CASE WHEN EXISTS (SELECT FROM picked) THEN $3::int ELSE greatest($3::int, 1) END)
    )"""

# Where nothing was taken, a candidate without an id says that there may be more of them than were looked at.
_SEEN_OR_MORE: Final[LiteralString] = """
    seen AS (
        (
            SELECT id, priority, "createdAt", turn
            FROM candidate
            LIMIT (SELECT CASE WHEN EXISTS (SELECT FROM picked) THEN $3::int ELSE greatest($3::int, 1) END)
        )
        UNION ALL
        SELECT '', NULL, NULL, NULL
        WHERE NOT EXISTS (SELECT FROM picked) AND (SELECT count(*) FROM candidate) >= $4::int
    )"""

ANSWER: Final[LiteralString] = """
    SELECT
        id, run, stage, priority, attempt, max_attempts, payload, started, status, turn,
        (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::int
    FROM (
        SELECT *, NULL::bigint AS turn FROM claimed
        UNION ALL
        SELECT id, NULL, NULL, priority, NULL, NULL, NULL, NULL, NULL, "createdAt", turn FROM seen
    ) answer
    ORDER BY started IS NULL, priority DESC, created, id COLLATE "C"
    """

_TAKE: Final[LiteralString] = f"""
    picked AS MATERIALIZED (
        SELECT locked.id, locked.start, locked.dead
        FROM candidate
        CROSS JOIN LATERAL {LOCKED}
        LIMIT (SELECT $2::int)
    ),
    {CLAIMED},"""

TAKE: Final[LiteralString] = f"{_TAKE}{_SEEN_OR_MORE}{ANSWER}"


def claim_any(worker_id: str, limit: int, lookahead: int, window: int) -> Statement:
    """Whatever is due. `window` bounds what is looked at of the jobs that have a date.

    Jobs without a date are all claimable, in the order of their index. Of those with one the first in that order are
    looked at, due or not; and, should none of these be due, those that have been due for longest.
    """
    return Statement(
        f"""
        WITH {CLOCK},
        due AS (
            SELECT id, priority, "createdAt"
            FROM (
                SELECT id, priority, "createdAt", "nextPollAt"
                FROM @job_queue
                WHERE status = 'PENDING' AND "nextPollAt" IS NOT NULL
                ORDER BY priority DESC, "createdAt", id COLLATE "C"
                LIMIT (SELECT $4::int)
            ) dated
            WHERE "nextPollAt" <= (SELECT now FROM clock)
            UNION
            (
                SELECT id, priority, "createdAt"
                FROM @job_queue
                WHERE status = 'PENDING' AND "nextPollAt" IS NOT NULL AND "nextPollAt" <= (SELECT now FROM clock)
                ORDER BY "nextPollAt"
                LIMIT (SELECT $4::int)
            )
            LIMIT 5000
        ),
        candidate AS MATERIALIZED (
            SELECT id, priority, "createdAt", NULL::bigint AS turn
            FROM (
                (
                    SELECT id, priority, "createdAt"
                    FROM @job_queue
                    WHERE status = 'PENDING' AND "nextPollAt" IS NULL
                    ORDER BY priority DESC, "createdAt", id COLLATE "C"
                    LIMIT 5000
                )
                UNION ALL
                SELECT id, priority, "createdAt" FROM due
            ) ready_or_due
            ORDER BY priority DESC, "createdAt", id COLLATE "C"
        ),
        {TAKE}
        """,
        (worker_id, limit, lookahead, window),
    )


def claim_served(worker_id: str, limit: int, lookahead: int, window: int, lanes: Sequence[str]) -> Statement:
    """The same of some lanes only, each looked at for itself: what lies in others costs nothing.

    `window` bounds what is looked at of each lane.
    """
    return Statement(
        f"""
        WITH {CLOCK},
        candidate AS MATERIALIZED (
            SELECT job.id, job.priority, job."createdAt", NULL::bigint AS turn
            FROM unnest((SELECT $5::text[])) served (lane)
            CROSS JOIN LATERAL (
                (
                    SELECT id, priority, "createdAt"
                    FROM @job_queue
                    WHERE status = 'PENDING' AND "nextPollAt" IS NULL
                      AND wa_lane >= served.lane AND wa_lane <= served.lane
                    ORDER BY wa_lane, priority DESC, "createdAt", id COLLATE "C"
                    LIMIT (SELECT $4::int)
                )
                UNION ALL
                SELECT id, priority, "createdAt"
                FROM (
                    SELECT id, priority, "createdAt", "nextPollAt"
                    FROM @job_queue
                    WHERE status = 'PENDING' AND "nextPollAt" IS NOT NULL
                      AND wa_lane >= served.lane AND wa_lane <= served.lane
                    ORDER BY wa_lane, priority DESC, "createdAt", id COLLATE "C"
                    LIMIT (SELECT $4::int)
                ) dated
                WHERE "nextPollAt" <= (SELECT now FROM clock)
                UNION
                (
                    SELECT id, priority, "createdAt"
                    FROM @job_queue
                    WHERE status = 'PENDING' AND "nextPollAt" IS NOT NULL AND "nextPollAt" <= (SELECT now FROM clock)
                      AND wa_lane >= served.lane AND wa_lane <= served.lane
                    ORDER BY wa_lane, "nextPollAt"
                    LIMIT (SELECT $4::int)
                )
                LIMIT 5000
            ) job
            ORDER BY job.priority DESC, job."createdAt", job.id COLLATE "C"
        ),
        {TAKE}
        """,
        (worker_id, limit, lookahead, window, lanes),
    )


def claim_known(worker_id: str, limit: int, ids: Sequence[str]) -> Statement:
    """Of these jobs, in this order, what is still to be had. Needs nothing that the reference lacks."""
    return Statement(
        f"""
        WITH {CLOCK},
        candidate AS MATERIALIZED (
            SELECT known.id, 0 AS priority, NULL::timestamp AS "createdAt", NULL::bigint AS turn
            FROM unnest((SELECT $4::text[])) known (id)
        ),
        {_TAKE}
        {SEEN}
        {ANSWER}
        """,
        (worker_id, limit, 0, ids),
    )
