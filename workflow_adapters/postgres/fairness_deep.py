"""Claims under a cap when full groups take up the head of the queue.

A look at the head finds nothing then, however long it is. So the groups are gone through one by one, each for the first
of its due jobs. That costs a few microseconds per group. What it found besides is remembered and tried first for a
while (`workflow_adapters.postgres.lookahead`), together with the groups in which this process has made room since.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, LiteralString

from workflow_adapters.postgres.claims import ANSWER, CLOCK, SEEN, number
from workflow_adapters.postgres.fairness import take_in_turn
from workflow_adapters.postgres.lanes import FIRST_LANE, LAST_LANE
from workflow_adapters.postgres.schema.job_queue import LANE
from workflow_adapters.sql.statement import Statement

_OF_EACH_PART: Final = 10


def claim_deep_fairly(worker_id: str, limit: int, lookahead: int, cap: int, lanes: Sequence[str] | None) -> Statement:
    """The best due job with room, wherever it stands. `lanes` None is any."""
    first_lanes, last_lanes = ([FIRST_LANE], [LAST_LANE]) if lanes is None else (lanes, lanes)
    return Statement(_claim_deep_fairly(cap), (worker_id, limit, lookahead, first_lanes, last_lanes))


@cache
def _claim_deep_fairly(cap: int) -> LiteralString:
    return f"""
        WITH RECURSIVE {CLOCK},
        part (wa_lane, wa_group, last_lane) AS (
            SELECT head.wa_lane, head.wa_group, span.last_lane
            FROM unnest((SELECT $4::text[]), (SELECT $5::text[])) span (first_lane, last_lane)
            CROSS JOIN LATERAL (
                SELECT wa_lane, wa_group
                FROM @job_queue
                WHERE ({LANE}) >= span.first_lane AND ({LANE}) <= span.last_lane
                ORDER BY ({LANE}), wa_group
                LIMIT 1
            ) head
            UNION ALL
            SELECT following.wa_lane, following.wa_group, part.last_lane
            FROM part
            CROSS JOIN LATERAL (
                SELECT wa_lane, wa_group
                FROM @job_queue
                WHERE (({LANE}), wa_group) > (part.wa_lane, part.wa_group) AND ({LANE}) <= part.last_lane
                ORDER BY ({LANE}), wa_group
                LIMIT 1
            ) following
        ),
        found AS (
            SELECT job.id, job.priority, job."createdAt", part.wa_lane, part.wa_group
            FROM part
            CROSS JOIN LATERAL (
                SELECT id, priority, "createdAt"
                FROM @job_queue
                WHERE ({LANE}) = part.wa_lane AND wa_group = part.wa_group
                  AND ("nextPollAt" IS NULL OR "nextPollAt" <= (SELECT now FROM clock))
                ORDER BY priority DESC, "createdAt", id COLLATE "C"
                LIMIT {number(min(cap, _OF_EACH_PART))}
            ) job
        ),
        {take_in_turn(cap)},
        {SEEN}
        {ANSWER}
        """


def claim_known_fairly(
    worker_id: str, limit: int, ids: Sequence[str], cap: int, parts: Sequence[tuple[str, str]]
) -> Statement:
    """The best of these jobs and of the first due jobs of these parts, each a lane and a group."""
    return Statement(
        _claim_known_fairly(min(limit, cap, _OF_EACH_PART), cap),
        (worker_id, limit, 0, ids, [lane for lane, _ in parts], [group for _, group in parts]),
    )


@cache
def _claim_known_fairly(each: int, cap: int) -> LiteralString:
    return f"""
        WITH {CLOCK},
        found AS (
            SELECT job.id, job.priority, job."createdAt", job.wa_lane, job.wa_group
            FROM unnest((SELECT $4::text[])) known (id)
            CROSS JOIN LATERAL (
                SELECT id, priority, "createdAt", wa_lane, wa_group
                FROM @job_queue
                WHERE id = known.id AND status::text = 'PENDING'
                OFFSET 0
            ) job
            UNION
            SELECT job.id, job.priority, job."createdAt", part.wa_lane, part.wa_group
            FROM unnest((SELECT $5::text[]), (SELECT $6::text[])) part (wa_lane, wa_group)
            CROSS JOIN LATERAL (
                SELECT id, priority, "createdAt"
                FROM @job_queue
                WHERE ({LANE}) = part.wa_lane AND wa_group = part.wa_group
                  AND ("nextPollAt" IS NULL OR "nextPollAt" <= (SELECT now FROM clock))
                ORDER BY priority DESC, "createdAt", id COLLATE "C"
                LIMIT {number(each)}
            ) job
        ),
        {take_in_turn(cap)},
        {SEEN}
        {ANSWER}
        """
