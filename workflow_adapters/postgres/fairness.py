"""Claims under a cap on the RUNNING jobs of each group, on a schema of ours, by `_groupKey`.

Made like those of `workflow_adapters.postgres.claims`; the cap stands in the text. The look makes `found`; of those,
`candidate` has the ones whose group has room.

The cap is strict. To count in the claiming statement is not enough: its snapshot is older than the locks it takes, so
two claims may count the same room. So claims of a group take turns. A turn is a number in wa_fairness_turns, which
every claim of the groups that share the row raises. It is read in the snapshot that counts; then the row is locked on
the condition that it still has that number, which the server checks on the row's newest version. So a claim that goes
through has seen every claim of its group that was committed, and no other can be committed before it. Nothing else
raises the count, so those who acknowledge, sweep or delete have nothing to keep up to date. Rows that are locked are
passed by: nobody waits, and no deadlock is possible.

A batch takes no more of a group than there is room for: `place` counts the group's jobs. Dead jobs need no room.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import LiteralString

from workflow_adapters.postgres.claims import ANSWER, CLAIMED, CLOCK, LOCKED, number, seen_or_more
from workflow_adapters.postgres.schema.job_queue import (
    DATED,
    DUE_AT,
    LANE,
    LANE_DATED,
    LANE_READY,
    READY,
    RUNNING_GROUP,
)
from workflow_adapters.sql.statement import Statement


def take_in_turn(cap: int) -> LiteralString:
    """Lock and take candidates whose group has room; the answer follows."""
    return f"""
    candidate AS MATERIALIZED (
        SELECT ranked.id, ranked.priority, ranked."createdAt", turns.bucket, turns.turn
        FROM (
            SELECT
                id, priority, "createdAt", wa_lane, wa_group,
                row_number() OVER (PARTITION BY wa_group ORDER BY priority DESC, "createdAt", id COLLATE "C") AS place
            FROM found
            ORDER BY priority DESC, "createdAt", id COLLATE "C"
            LIMIT 1000
        ) ranked
        CROSS JOIN LATERAL (
            SELECT
            FROM (
                SELECT
                FROM @job_queue
                WHERE ({RUNNING_GROUP}) = ranked.wa_group
                LIMIT {number(cap)}
            ) running
            HAVING count(*) + least(ranked.place, $2::int) <= {number(cap)} OR ranked.wa_lane = ''
            OFFSET 0
        ) room
        CROSS JOIN LATERAL (
            SELECT t.bucket, t.turn
            FROM @wa_fairness_turns t
            WHERE t.bucket = hashtext(ranked.wa_group) & 1023
            OFFSET 0
        ) turns
    ),
    picked AS MATERIALIZED (
        SELECT locked.id, locked.start, locked.dead, candidate.bucket
        FROM candidate
        CROSS JOIN LATERAL (
            SELECT
            FROM @wa_fairness_turns t
            WHERE t.bucket = candidate.bucket AND t.turn = candidate.turn
            FOR NO KEY UPDATE SKIP LOCKED
        ) ours
        CROSS JOIN LATERAL {LOCKED}
        LIMIT (SELECT $2::int)
    ),
    raised AS (
        UPDATE @wa_fairness_turns t SET turn = t.turn + 1 WHERE t.bucket = ANY (ARRAY(SELECT bucket FROM picked))
    ),
    {CLAIMED}"""


def claim_any_fairly(worker_id: str, limit: int, lookahead: int, window: int, cap: int) -> Statement:
    """Whatever is due and has room, of the first `window` jobs without a date and the first ones that have one."""
    return Statement(_claim_any_fairly(window, cap), (worker_id, limit, lookahead))


@cache
def _claim_any_fairly(window: int, cap: int) -> LiteralString:
    return f"""
        WITH {CLOCK},
        head AS MATERIALIZED (
            (
                SELECT id, priority, "createdAt", wa_lane, wa_group, "nextPollAt"
                FROM @job_queue
                WHERE ({READY}) IS NOT NULL
                ORDER BY ({READY}) DESC, "createdAt", id COLLATE "C"
                LIMIT {number(window)}
            )
            UNION ALL
            (
                SELECT id, priority, "createdAt", wa_lane, wa_group, "nextPollAt"
                FROM @job_queue
                WHERE ({DATED}) IS NOT NULL
                ORDER BY ({DATED}) DESC, "createdAt", id COLLATE "C"
                LIMIT {number(window)}
            )
            UNION
            (
                SELECT id, priority, "createdAt", wa_lane, wa_group, "nextPollAt"
                FROM @job_queue
                WHERE ({DUE_AT}) <= (SELECT now FROM clock)
                ORDER BY ({DUE_AT})
                LIMIT {number(window)}
            )
        ),
        found AS (
            SELECT * FROM head WHERE "nextPollAt" IS NULL OR "nextPollAt" <= (SELECT now FROM clock)
        ),
        {take_in_turn(cap)},
        {seen_or_more(window, "head")}
        {ANSWER}
        """


def claim_served_fairly(
    worker_id: str, limit: int, lookahead: int, window: int, cap: int, lanes: Sequence[str]
) -> Statement:
    """The same of some lanes only, each looked at for itself."""
    return Statement(_claim_served_fairly(window, cap), (worker_id, limit, lookahead, lanes))


@cache
def _claim_served_fairly(window: int, cap: int) -> LiteralString:
    return f"""
        WITH {CLOCK},
        head AS MATERIALIZED (
            SELECT job.*
            FROM unnest((SELECT $4::text[])) served (lane)
            CROSS JOIN LATERAL (
                (
                    SELECT id, priority, "createdAt", wa_lane, wa_group, "nextPollAt"
                    FROM @job_queue
                    WHERE ({LANE_READY}) = served.lane
                    ORDER BY priority DESC, "createdAt", id COLLATE "C"
                    LIMIT {number(window)}
                )
                UNION ALL
                (
                    SELECT id, priority, "createdAt", wa_lane, wa_group, "nextPollAt"
                    FROM @job_queue
                    WHERE ({LANE_DATED}) = served.lane
                    ORDER BY priority DESC, "createdAt", id COLLATE "C"
                    LIMIT {number(window)}
                )
                UNION
                (
                    SELECT id, priority, "createdAt", wa_lane, wa_group, "nextPollAt"
                    FROM @job_queue
                    WHERE ({LANE}) = served.lane AND "nextPollAt" <= (SELECT now FROM clock)
                    ORDER BY "nextPollAt"
                    LIMIT {number(window)}
                )
            ) job
        ),
        found AS (
            SELECT * FROM head WHERE "nextPollAt" IS NULL OR "nextPollAt" <= (SELECT now FROM clock)
        ),
        {take_in_turn(cap)},
        {seen_or_more(window, "head")}
        {ANSWER}
        """
