"""outbox_events: appends, claims and leases on SQLite, where a write transaction excludes every other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from workflow_adapters.arguments import enforces
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.outbox import DEFAULT_OUTBOX_LEASE, DEFAULT_OUTBOX_LIMIT, CreateOutboxEventInput
from workflow_adapters.ports.outbox import Outbox, SupportsOutboxLease
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord
from workflow_adapters.sql.columns import instant_to_ms, json_argument
from workflow_adapters.sql.database import Database
from workflow_adapters.sql.outbox import SqlOutbox
from workflow_adapters.sql.outbox_lease import LEASE_OFFSET, lease_token, read_events
from workflow_adapters.sql.outbox_rotation import OutboxRotation
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sqlite.outbox_selection import select_events


@enforces(Outbox, SupportsOutboxLease)
class SqliteOutbox(SqlOutbox):
    def __init__(self, database: Database, rotation: OutboxRotation) -> None:
        super().__init__(database)
        self._rotation = rotation

    async def append_outbox_events(self, events: Sequence[CreateOutboxEventInput]) -> None:
        if not events:
            return
        rows = [
            (
                new_id(),
                event.workflow_run_id,
                event.event_type,
                json_argument(event.payload, required=True),
                event.causation_id,
                instant_to_ms(event.occurred_at),
            )
            for event in events
        ]

        def operation() -> Operation[None]:
            yield Statement(
                """
                INSERT INTO @outbox_events (
                    id, "createdAt", "workflowRunId", sequence, "eventType", payload, "causationId", "occurredAt"
                )
                SELECT
                    json_extract(e.value, '$[0]'), $1, json_extract(e.value, '$[1]'),
                    coalesce(
                        (SELECT max(sequence) FROM @outbox_events
                         WHERE "workflowRunId" = json_extract(e.value, '$[1]')), 0
                    ) + row_number() OVER (PARTITION BY json_extract(e.value, '$[1]') ORDER BY e.key),
                    json_extract(e.value, '$[2]'), json_extract(e.value, '$[3]'), json_extract(e.value, '$[4]'),
                    json_extract(e.value, '$[5]')
                FROM json_each($2) AS e
                """,
                (self._database.now(), json.dumps(rows, ensure_ascii=False)),
            )

        await self._database.write(operation, single=True)

    async def claim_unpublished_outbox_events(self, limit: int = DEFAULT_OUTBOX_LIMIT) -> list[OutboxRecord]:
        def operation() -> Operation[list[OutboxRecord]]:
            now = self._database.now()
            selected = yield from select_events(self._rotation, now, limit)
            return (yield from _stamp(selected, now, now))

        return await self._database.write(operation)

    async def lease_outbox_events(
        self, limit: int = DEFAULT_OUTBOX_LIMIT, lease: timedelta = DEFAULT_OUTBOX_LEASE
    ) -> OutboxLease:
        def operation() -> Operation[OutboxLease]:
            # Read under the lock, whose wait would else be a part of the lease.
            now = self._database.now()
            selected = yield from select_events(self._rotation, now, limit)
            marker = yield from _unused_marker(self._rotation, now, now + LEASE_OFFSET + lease)
            events = yield from _stamp(selected, marker, now)
            return OutboxLease(token=lease_token(marker), expires_at=marker - LEASE_OFFSET, events=tuple(events))

        return await self._database.write(operation)


def _stamp(ids: Sequence[str], published_at: datetime, now: datetime) -> Operation[list[OutboxRecord]]:
    if not ids:
        return []
    rows = yield Statement(
        """
        UPDATE @outbox_events
        SET "publishedAt" = $2
        WHERE id = ANY($1::text[])
        RETURNING @outbox.columns
        """,
        (ids, published_at),
    )
    return sorted(read_events(rows, now), key=lambda event: (event.workflow_run_id, event.sequence))


def _unused_marker(rotation: OutboxRotation, now: datetime, marker: datetime) -> Operation[datetime]:
    """The first marker from `marker` on that no lease has or, in this process, had: it is the lease's token."""
    marker = rotation.marker(marker, now)
    while (yield Statement('SELECT 1 FROM @outbox_events WHERE "publishedAt" = $1 LIMIT 1', (marker,))):
        marker = rotation.marker(marker, now)
    return marker
