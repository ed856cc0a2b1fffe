"""Claims on a schema of ours: one statement that looks for candidates, locks as many as are wanted, and takes them.

A claim is a look and then what all claims do. The look makes `candidate`, jobs in the order in which they are to be
tried; how it finds them is what tells the claims apart. It reads bounded stretches of indexes, so that its cost does
not depend on the depth of the queue. Candidates are then locked one after the other by primary key. Those that somebody
else holds are passed by, and `picked` stops at the limit, so nothing is locked that is not taken.

The arguments of all claims: $1 worker id, $2 limit, $3 lookahead (how many candidates to tell of besides), and from $4
on the look's own. What looks odd keeps the server's planner from harm:

- What is looked for is an expression that one index alone has (`workflow_adapters.postgres.schema.job_queue`).
- Windows stand in the text, so that the server knows how little is read and takes the index that has the order.
- ``LIMIT (SELECT $2::int)`` and ``unnest((SELECT $4::text[]))`` hide the value. A plan for any value then costs what a
  plan for this one does, so the server keeps the one it has and does not plan each claim anew.
- ``status::text``, where a job is looked up by id, fits no index on status. Statistics often say that a status has
  hardly any rows, and such an index is then taken for the primary key's equal.
- ``id = ANY (ARRAY(SELECT …))`` has the update find its jobs by primary key; a join may read the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, LiteralString, cast

from workflow_adapters.postgres.schema.job_queue import (
    DATED,
    DUE_AT,
    LANE,
    LANE_DATED,
    LANE_READY,
    READY,
)
from workflow_adapters.sql.statement import Statement


def number(value: int) -> LiteralString:
    """A number that stands in the text, where the planner sees it."""
    return cast(LiteralString, f"{value:d}")


# Of what is in order already no more is read than is needed, so there may be many claimers ahead.
_AHEAD: Final = 8

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


def seen_or_more(window: int, looked_at: LiteralString) -> LiteralString:
    """The same, and a candidate without an id where fewer were taken than wanted and more may be behind the window."""
    return f"""
    seen AS (
        (
            SELECT id, priority, "createdAt", turn
            FROM candidate
            LIMIT (SELECT CASE WHEN EXISTS (SELECT FROM picked) THEN $3::int ELSE greatest($3::int, 1) END)
        )
        UNION ALL
        SELECT '', NULL, NULL, NULL
        WHERE (SELECT count(*) FROM picked) < $2::int AND (SELECT count(*) FROM {looked_at}) >= {number(window)}
    )"""


def take(window: int, looked_at: LiteralString = "candidate") -> LiteralString:
    """Lock and take candidates, and answer."""
    return f"{_TAKE}{seen_or_more(window, looked_at)}{ANSWER}"


def claim_any(worker_id: str, limit: int, lookahead: int, window: int) -> Statement:
    """Whatever is due. `window` bounds what is looked at of the jobs that have a date.

    Jobs without a date are all claimable, in the order of their index. Of those with one the first in that order are
    looked at, due or not; and, should none of these be due, those that have been due for longest.
    """
    return Statement(_claim_any(window), (worker_id, limit, lookahead))


@cache
def _claim_any(window: int) -> LiteralString:
    return f"""
        WITH {CLOCK},
        due AS (
            SELECT id, priority, "createdAt"
            FROM (
                SELECT id, priority, "createdAt", "nextPollAt"
                FROM @job_queue
                WHERE ({DATED}) IS NOT NULL
                ORDER BY ({DATED}) DESC, "createdAt", id COLLATE "C"
                LIMIT {number(window)}
            ) dated
            WHERE "nextPollAt" <= (SELECT now FROM clock)
            UNION
            (
                SELECT id, priority, "createdAt"
                FROM @job_queue
                WHERE ({DUE_AT}) <= (SELECT now FROM clock)
                ORDER BY ({DUE_AT})
                LIMIT {number(window)}
            )
        ),
        candidate AS MATERIALIZED (
            SELECT id, priority, "createdAt", NULL::bigint AS turn
            FROM (
                (
                    SELECT id, priority, "createdAt"
                    FROM @job_queue
                    WHERE ({READY}) IS NOT NULL
                    ORDER BY ({READY}) DESC, "createdAt", id COLLATE "C"
                    LIMIT {number(_AHEAD * window)}
                )
                UNION ALL
                SELECT id, priority, "createdAt" FROM due
            ) ready_or_due
            ORDER BY priority DESC, "createdAt", id COLLATE "C"
        ),
        {take(window)}
        """


def claim_served(worker_id: str, limit: int, lookahead: int, window: int, lanes: Sequence[str]) -> Statement:
    """The same of some lanes only, each looked at for itself: what lies in others costs nothing.

    `window` bounds what is looked at of each lane.
    """
    return Statement(_claim_served(window), (worker_id, limit, lookahead, lanes))


@cache
def _claim_served(window: int) -> LiteralString:
    return f"""
        WITH {CLOCK},
        candidate AS MATERIALIZED (
            SELECT job.id, job.priority, job."createdAt", NULL::bigint AS turn
            FROM unnest((SELECT $4::text[])) served (lane)
            CROSS JOIN LATERAL (
                (
                    SELECT id, priority, "createdAt"
                    FROM @job_queue
                    WHERE ({LANE_READY}) = served.lane
                    ORDER BY priority DESC, "createdAt", id COLLATE "C"
                    LIMIT {number(window)}
                )
                UNION ALL
                SELECT id, priority, "createdAt"
                FROM (
                    SELECT id, priority, "createdAt", "nextPollAt"
                    FROM @job_queue
                    WHERE ({LANE_DATED}) = served.lane
                    ORDER BY priority DESC, "createdAt", id COLLATE "C"
                    LIMIT {number(window)}
                ) dated
                WHERE "nextPollAt" <= (SELECT now FROM clock)
                UNION
                (
                    SELECT id, priority, "createdAt"
                    FROM @job_queue
                    WHERE ({LANE}) = served.lane AND "nextPollAt" <= (SELECT now FROM clock)
                    ORDER BY "nextPollAt"
                    LIMIT {number(window)}
                )
            ) job
            ORDER BY job.priority DESC, job."createdAt", job.id COLLATE "C"
        ),
        {take(window)}
        """


def claim_known(worker_id: str, limit: int, ids: Sequence[str]) -> Statement:
    """Of these jobs, in this order, what is still to be had. Needs nothing that the reference lacks."""
    return Statement(_claim_known(), (worker_id, limit, 0, ids))


@cache
def _claim_known() -> LiteralString:
    return f"""
        WITH {CLOCK},
        candidate AS MATERIALIZED (
            SELECT known.id, 0 AS priority, NULL::timestamp AS "createdAt", NULL::bigint AS turn
            FROM unnest((SELECT $4::text[])) known (id)
        ),
        {_TAKE}
        {SEEN}
        {ANSWER}
        """
