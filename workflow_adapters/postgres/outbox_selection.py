"""Which outbox events a claim or a lease takes, in one statement that stamps them.

A run's first unpublished event stands for the run: who has it locked, or has changed it since the snapshot, has the
run, and it is passed by whole. ``xmin`` tells the latter; the server checks it on the row's newest version. Of each run
that is left an unbroken row of events is taken from there on. Every lock is passed by where it is taken: nobody waits.

Runs take turns, beginning after the one where this process stopped last time. From each comes its first event, then
from each its second, until there are enough. As each run has at least one, none can have more than the limit and one,
less the number of runs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, LiteralString

from workflow_adapters.sql.outbox_lease import LEASE_HORIZON, LEASE_OFFSET
from workflow_adapters.sql.statement import Statement

RECOVERED: Final = 1
MARKER_TAKEN: Final = 2

# Arguments: $1 limit, $2 the run served last, $3 the stamp to set, $4 from where on a stamp marks a lease, $5 up to
# which marker a lease has expired (NULL: let it lie), $6 whether the stamp is a marker, $7 a number made from it.
#
# Where events of expired leases are found, they are made unpublished and nothing else is done: this statement's
# snapshot still has them as leased, and their runs' later events must not go first.
_BEFORE: Final[LiteralString] = """
    expired AS MATERIALIZED (
        SELECT id
        FROM @outbox_events
        WHERE "publishedAt" > $4::text::timestamp AND "publishedAt" <= $5::text::timestamp AND "dlqAt" IS NULL
        FOR NO KEY UPDATE SKIP LOCKED
    ),
    recovered AS (
        UPDATE @outbox_events SET "publishedAt" = NULL WHERE id = ANY (ARRAY(SELECT id FROM expired))
    ),
    leased AS MATERIALIZED (
        SELECT DISTINCT "workflowRunId" AS run, "publishedAt" AS marker
        FROM @outbox_events
        WHERE "publishedAt" > $4::text::timestamp AND "dlqAt" IS NULL
    ),
    state AS MATERIALIZED (
        SELECT CASE
            WHEN EXISTS (SELECT FROM expired) THEN 1
            WHEN NOT $6::boolean THEN 0
            WHEN EXISTS (SELECT FROM leased WHERE marker = $3::text::timestamp) THEN 2
            WHEN NOT pg_try_advisory_xact_lock(hashtext('workflow_adapters lease'), $7::int) THEN 2
            ELSE 0
        END AS code
    )"""


def _take(collation: LiteralString) -> LiteralString:
    """Lock the runs and take their events; with the collation of the index that has these events in order."""
    return f"""
    head AS MATERIALIZED (
        SELECT run.name, run.sequence
        FROM run
        CROSS JOIN LATERAL (
            SELECT
            FROM @outbox_events e
            WHERE e.id = run.id AND e.xmin = run.version AND e."publishedAt" IS NULL AND e."dlqAt" IS NULL
            FOR NO KEY UPDATE SKIP LOCKED
        ) locked
        LIMIT (SELECT $1::int)
    ),
    wanted AS MATERIALIZED (
        SELECT event.*
        FROM head
        CROSS JOIN LATERAL (
            SELECT e.id, e."workflowRunId" AS run, e.sequence, e.xmin AS version,
                row_number() OVER (ORDER BY e.sequence) AS lap
            FROM @outbox_events e
            WHERE e."workflowRunId"{collation} = head.name AND e.sequence >= head.sequence
              AND e."publishedAt" IS NULL AND e."dlqAt" IS NULL
            ORDER BY e.sequence
            LIMIT (SELECT $1::int - count(*) + 1 FROM head)
        ) event
        ORDER BY event.lap, event.run COLLATE "C" <= $2::text, event.run COLLATE "C"
        LIMIT (SELECT $1::int)
    ),
    taken AS MATERIALIZED (
        SELECT wanted.id, wanted.lap, row_number() OVER (PARTITION BY wanted.run ORDER BY wanted.sequence) AS position
        FROM (SELECT * FROM wanted ORDER BY run COLLATE "C", sequence OFFSET 0) wanted
        CROSS JOIN LATERAL (
            SELECT
            FROM @outbox_events e
            WHERE e.id = wanted.id AND e.xmin = wanted.version AND e."publishedAt" IS NULL AND e."dlqAt" IS NULL
            FOR NO KEY UPDATE SKIP LOCKED
        ) locked
    ),
    stamped AS (
        UPDATE @outbox_events e
        SET "publishedAt" = $3::text::timestamp
        WHERE e.id = ANY (ARRAY(SELECT id FROM taken WHERE lap = position))
        RETURNING @outbox.columns(e)
    )
    SELECT state.code, stamped.*
    FROM state
    LEFT JOIN stamped ON true
    ORDER BY stamped."workflowRunId" COLLATE "C", stamped.sequence
    """


def select_events(
    now: datetime, limit: int, after: str, stamp: datetime, *, leases: bool, recovers: bool, owned: bool
) -> Statement:
    """Stamp events and return them, each behind a 0; or RECOVERED or MARKER_TAKEN alone, and nothing was taken."""
    marker = int(stamp.timestamp() * 1000) & 0x7FFFFFFF if leases else 0
    expired = now + LEASE_OFFSET if recovers else None
    args = (limit, after, stamp, now + LEASE_HORIZON, expired, leases, marker)
    if owned:
        # One look into the index for each run, and no more of them than are wanted.
        return Statement(
            f"""
            WITH RECURSIVE {_BEFORE},
            later (id, name, sequence, version) AS (
                (
                    SELECT id, "workflowRunId", sequence, xmin
                    FROM @outbox_events
                    WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL AND "workflowRunId" COLLATE "C" > $2::text
                    ORDER BY "workflowRunId" COLLATE "C", sequence
                    LIMIT 1
                )
                UNION ALL
                SELECT following.*
                FROM later
                CROSS JOIN LATERAL (
                    SELECT id, "workflowRunId", sequence, xmin
                    FROM @outbox_events
                    WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL AND "workflowRunId" COLLATE "C" > later.name
                    ORDER BY "workflowRunId" COLLATE "C", sequence
                    LIMIT 1
                ) following
            ),
            earlier (id, name, sequence, version) AS (
                (
                    SELECT id, "workflowRunId", sequence, xmin
                    FROM @outbox_events
                    WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL AND "workflowRunId" COLLATE "C" <= $2::text
                    ORDER BY "workflowRunId" COLLATE "C", sequence
                    LIMIT 1
                )
                UNION ALL
                SELECT following.*
                FROM earlier
                CROSS JOIN LATERAL (
                    SELECT id, "workflowRunId", sequence, xmin
                    FROM @outbox_events
                    WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL
                      AND "workflowRunId" COLLATE "C" > earlier.name AND "workflowRunId" COLLATE "C" <= $2::text
                    ORDER BY "workflowRunId" COLLATE "C", sequence
                    LIMIT 1
                ) following
            ),
            run AS (
                SELECT *
                FROM (SELECT * FROM later UNION ALL SELECT * FROM earlier) rotated
                WHERE (SELECT code FROM state) = 0 AND name <> ALL (ARRAY(SELECT run FROM leased))
            ),
            {_take(' COLLATE "C"')}
            """,
            args,
        )
    return Statement(
        f"""
        WITH {_BEFORE},
        run AS (
            SELECT *
            FROM (
                SELECT DISTINCT ON ("workflowRunId") id, "workflowRunId" AS name, sequence, xmin AS version
                FROM @outbox_events
                WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL
                ORDER BY "workflowRunId", sequence
            ) first_of_run
            WHERE (SELECT code FROM state) = 0 AND name <> ALL (ARRAY(SELECT run FROM leased))
            ORDER BY name COLLATE "C" <= $2::text, name COLLATE "C"
        ),
        {_take("")}
        """,
        args,
    )
