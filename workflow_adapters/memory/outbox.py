"""outbox_events. Which events a claim or a lease takes is in `outbox_selection`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.outbox import DEFAULT_OUTBOX_LEASE, DEFAULT_OUTBOX_LIMIT, CreateOutboxEventInput
from workflow_adapters.memory.adapter import MemoryAdapter, later
from workflow_adapters.memory.outbox_selection import is_leased, select_events
from workflow_adapters.memory.rows import OutboxRow, copied, detached
from workflow_adapters.memory.tables import Tables
from workflow_adapters.ports.outbox import Outbox, SupportsOutboxLease
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord


@enforces(Outbox, SupportsOutboxLease)
class MemoryOutbox(MemoryAdapter):
    async def append_outbox_events(self, events: Sequence[CreateOutboxEventInput]) -> None:
        async with self._session.write() as tables:
            for event in events:
                last = tables.outbox.by_run.last(event.workflow_run_id)
                sequence = 1 if last is None else last.event.sequence + 1
                tables.outbox.put(OutboxRow(event=_new_event(event, sequence)))

    async def get_unpublished_outbox_events(self, limit: int = DEFAULT_OUTBOX_LIMIT) -> list[OutboxRecord]:
        async with self._session.read() as tables:
            now = self._session.now()
            unpublished = (
                row
                for run_id in sorted(tables.outbox.unpublished.buckets())
                for row in tables.outbox.unpublished.iterate(run_id)
                if not is_leased(row, now)
            )
            return [detached(row.event) for row in islice(unpublished, limit)]

    async def claim_unpublished_outbox_events(self, limit: int = DEFAULT_OUTBOX_LIMIT) -> list[OutboxRecord]:
        async with self._session.write() as tables:
            now = self._session.now()
            selected = select_events(tables, self._session.home.rotation, now, limit)
            return _listed([tables.outbox.put(_published(row, now)) for row in selected])

    async def release_outbox_events(self, ids: Sequence[str]) -> None:
        async with self._session.write() as tables:
            for row in _stored(tables, ids):
                tables.outbox.put(_unpublished(row))

    async def mark_outbox_events_published(self, ids: Sequence[str]) -> None:
        async with self._session.write() as tables:
            now = self._session.now()
            for row in _stored(tables, ids):
                tables.outbox.put(_published(row, now))

    async def increment_outbox_retry_count(self, id: str) -> int:
        async with self._session.write() as tables:
            row = _event(tables, id)
            count = row.event.retry_count + 1
            tables.outbox.put(replace(row, event=replace(row.event, retry_count=count)))
            return count

    async def move_outbox_event_to_dlq(self, id: str) -> None:
        async with self._session.write() as tables:
            row = _event(tables, id)
            tables.outbox.put(replace(row, event=replace(row.event, dlq_at=self._session.now())))

    async def replay_dlq_events(self, max_events: int) -> int:
        async with self._session.write() as tables:
            replayed = tables.outbox.dead[True][:max_events]
            for row in replayed:
                tables.outbox.put(OutboxRow(event=replace(row.event, dlq_at=None, published_at=None, retry_count=0)))
            return len(replayed)

    async def lease_outbox_events(
        self, limit: int = DEFAULT_OUTBOX_LIMIT, lease: timedelta = DEFAULT_OUTBOX_LEASE
    ) -> OutboxLease:
        async with self._session.write() as tables:
            now = self._session.now()
            token, expires_at = new_id(), later(now, lease)
            selected = select_events(tables, self._session.home.rotation, now, limit)
            leased = [replace(row, lease_token=token, lease_expires_at=expires_at) for row in selected]
            events = _listed([tables.outbox.put(row) for row in leased])
            return OutboxLease(token=token, expires_at=expires_at, events=tuple(events))

    async def confirm_outbox_events(self, token: str, ids: Sequence[str]) -> int:
        async with self._session.write() as tables:
            now = self._session.now()
            held = [row for row in _stored(tables, ids) if row.lease_token == token and is_leased(row, now)]
            for row in held:
                tables.outbox.put(_published(row, now))
            return len(held)

    async def release_outbox_lease(self, token: str) -> None:
        async with self._session.write() as tables:
            for row in tables.outbox.by_lease[token]:
                tables.outbox.put(_unpublished(row))


def _new_event(event: CreateOutboxEventInput, sequence: int) -> OutboxRecord:
    return OutboxRecord(
        id=new_id(),
        workflow_run_id=event.workflow_run_id,
        sequence=sequence,
        event_type=event.event_type,
        payload=copied(event.payload),
        causation_id=event.causation_id,
        occurred_at=event.occurred_at,
        published_at=None,
        retry_count=0,
        dlq_at=None,
    )


def _published(row: OutboxRow, now: datetime) -> OutboxRow:
    return OutboxRow(event=replace(row.event, published_at=now))


def _unpublished(row: OutboxRow) -> OutboxRow:
    return OutboxRow(event=replace(row.event, published_at=None))


def _stored(tables: Tables, ids: Iterable[str]) -> list[OutboxRow]:
    """The events that there are among these ids, each once."""
    return [row for event_id in dict.fromkeys(ids) if (row := tables.outbox.get(event_id)) is not None]


def _event(tables: Tables, id: str) -> OutboxRow:
    row = tables.outbox.get(id)
    if row is None:
        raise NotFoundError("outbox event", id)
    return row


def _listed(rows: Iterable[OutboxRow]) -> list[OutboxRecord]:
    events = (detached(row.event) for row in rows)
    return sorted(events, key=lambda event: (event.workflow_run_id, event.sequence))
