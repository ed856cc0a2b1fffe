"""Which events a claim or a lease takes: the oldest of many runs rather than many of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from workflow_adapters.sql.outbox_lease import LEASE_HORIZON, LEASE_OFFSET
from workflow_adapters.sql.outbox_rotation import OutboxRotation
from workflow_adapters.sql.statement import Operation, Statement

_BEFORE_ALL: Final = ""


def select_events(rotation: OutboxRotation, now: datetime, limit: int) -> Operation[list[str]]:
    """At most `limit` ids in the order of their selection; moves the rotation on.

    Runs take turns, starting after the run that was served last: from each its first unpublished event, then from each
    its second, and so on. Runs under a lease are left out. For a write transaction, so that nobody takes what was read.
    """
    yield Statement(
        """
        UPDATE @outbox_events
        SET "publishedAt" = NULL
        WHERE "publishedAt" > $1 AND "publishedAt" <= $2
        """,
        (now + LEASE_HORIZON, now + LEASE_OFFSET),
    )
    runs = yield from _runs_after(rotation.last_run, now, limit)
    if rotation.last_run != _BEFORE_ALL and len(runs) < limit:
        first_runs = yield from _runs_after(_BEFORE_ALL, now, limit - len(runs))
        runs += [run for run in first_runs if run <= rotation.last_run]
    if not runs:
        return []
    events = yield from _events_of(runs, limit)
    longest = max(map(len, events))
    turns = (
        (run, ids[turn]) for turn in range(longest) for run, ids in zip(runs, events, strict=True) if turn < len(ids)
    )
    selected = list(islice(turns, limit))
    rotation.last_run = selected[-1][0]
    return [event_id for _, event_id in selected]


def _runs_after(run: str, now: datetime, limit: int) -> Operation[list[str]]:
    rows = yield Statement(
        """
        WITH RECURSIVE leased (run) AS MATERIALIZED (
            SELECT DISTINCT "workflowRunId" FROM @outbox_events INDEXED BY wa_outbox_published
            WHERE "publishedAt" > $2 AND "dlqAt" IS NULL
        ), unpublished (run) AS (
            SELECT (
                SELECT "workflowRunId" FROM @outbox_events INDEXED BY wa_outbox_unpublished
                WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL AND "workflowRunId" > $1
                ORDER BY "workflowRunId"
                LIMIT 1
            )
            UNION ALL
            SELECT (
                SELECT "workflowRunId" FROM @outbox_events INDEXED BY wa_outbox_unpublished
                WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL AND "workflowRunId" > unpublished.run
                ORDER BY "workflowRunId"
                LIMIT 1
            )
            FROM unpublished
            WHERE run IS NOT NULL
        )
        SELECT run
        FROM unpublished
        WHERE run IS NOT NULL AND run NOT IN (SELECT run FROM leased)
        LIMIT $3
        """,
        (run, now + LEASE_OFFSET, limit),
    )
    return [str(row[0]) for row in rows]


def _events_of(runs: Sequence[str], limit: int) -> Operation[list[list[str]]]:
    """The first unpublished events of each run: as many as a round robin up to `limit` may come to."""
    events: list[list[str]] = [[] for _ in runs]
    open_runs = list(range(len(runs)))
    depth = -(-limit // len(runs))
    while open_runs and sum(map(len, events)) < limit:
        still_open: list[int] = []
        for index in open_runs:
            known = len(events[index])
            rows = yield Statement(
                """
                SELECT id FROM @outbox_events INDEXED BY wa_outbox_unpublished
                WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL AND "workflowRunId" = $1
                ORDER BY sequence
                LIMIT $2 OFFSET $3
                """,
                (runs[index], depth - known, known),
            )
            events[index] += [str(row[0]) for row in rows]
            if len(events[index]) == depth:
                still_open.append(index)
        open_runs, depth = still_open, 2 * depth
    return events
