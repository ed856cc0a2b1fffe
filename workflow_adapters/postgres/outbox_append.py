"""Numbering and storing outbox events.

The numbers of a run are given under the lock that the TypeScript engine takes too, ``hashtext`` of the run's id, held
until the transaction ends. A statement of its own reads the last number, for its snapshot must be younger than the
lock. Locks are taken in the order of what is locked, the hash; two runs may share one.

A writer that does not take the lock may still get a number first. What was stored is then taken back and numbered anew,
without an error that would cost the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from workflow_adapters.ids import new_id
from workflow_adapters.inputs.outbox import CreateOutboxEventInput
from workflow_adapters.json_values import dumps
from workflow_adapters.postgres.style import instant_text
from workflow_adapters.sql.results import ATTEMPTS, lost_race
from workflow_adapters.sql.statement import Operation, Statement


def append_by_function(events: Sequence[CreateOutboxEventInput], now: datetime) -> Operation[None]:
    """On a schema of ours: both statements in one call of a function."""
    rows = yield Statement(
        """
        SELECT @wa_append_outbox_events(
            $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text
        )::int
        """,
        (*_columns(events), now),
    )
    if not rows[0][0]:
        raise lost_race("the numbering of the events' runs")


def append_under_locks(events: Sequence[CreateOutboxEventInput], now: datetime) -> Operation[None]:
    """On the bare reference schema, in one transaction."""
    columns = _columns(events)
    yield Statement(
        """
        SELECT pg_advisory_xact_lock(key)::text
        FROM (SELECT DISTINCT hashtext(run) AS key FROM unnest($1::text[]) AS run ORDER BY 1 OFFSET 0) AS locks
        """,
        (columns[1],),
    )
    for _ in range(ATTEMPTS):
        stored = yield Statement(
            """
            INSERT INTO @outbox_events (
                id, "createdAt", "workflowRunId", sequence, "eventType", payload, "causationId", "occurredAt",
                "retryCount"
            )
            SELECT
                event.id, $7::text::timestamp, event.run,
                last.sequence + row_number() OVER (PARTITION BY event.run ORDER BY event.position),
                event.type, event.payload::jsonb, event.causation, event.occurred::timestamp, 0
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
                WITH ORDINALITY AS event (id, run, type, payload, causation, occurred, position)
            JOIN (
                SELECT
                    name,
                    coalesce(
                        (SELECT max(e.sequence) FROM @outbox_events e WHERE e."workflowRunId" = name), 0
                    ) AS sequence
                FROM (SELECT DISTINCT unnest($2::text[])) AS run (name)
            ) AS last ON last.name = event.run
            ORDER BY event.run COLLATE "C", event.position
            ON CONFLICT ("workflowRunId", sequence) DO NOTHING
            RETURNING id
            """,
            (*columns, now),
        )
        if len(stored) == len(events):
            return
        yield Statement("DELETE FROM @outbox_events WHERE id = ANY ($1::text[])", (columns[0],))
    raise lost_race("the numbering of the events' runs")


def _columns(events: Sequence[CreateOutboxEventInput]) -> tuple[list[str], ...]:
    return (
        [new_id() for _ in events],
        [event.workflow_run_id for event in events],
        [event.event_type for event in events],
        [dumps(event.payload) for event in events],
        [event.causation_id for event in events],
        [instant_text(event.occurred_at) for event in events],
    )
