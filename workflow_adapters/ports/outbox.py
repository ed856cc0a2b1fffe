"""Contract of outbox_events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.outbox import (
    DEFAULT_OUTBOX_LEASE,
    DEFAULT_OUTBOX_LIMIT,
    CreateOutboxEventInput,
    outbox_lease,
)
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord
from workflow_adapters.validation import instance, key, non_negative, sequence


class Outbox(Protocol):
    """The transactional outbox: events of runs, numbered 1, 2, 3, … within each run."""

    @checked(events=sequence(instance(CreateOutboxEventInput)))
    async def append_outbox_events(self, events: Sequence[CreateOutboxEventInput]) -> None:
        """Store events with the next sequences of their runs, in call order. Empty: no-op. A run need not exist.

        No duplicates and, for committed work, no gaps, under any concurrency. Calls that append for many runs never
        deadlock one another.
        """
        ...

    @checked(limit=non_negative)
    async def get_unpublished_outbox_events(self, limit: int = DEFAULT_OUTBOX_LIMIT) -> list[OutboxRecord]:
        """Events neither published nor dead, by (workflow_run_id, sequence). A plain read."""
        ...

    @checked(limit=non_negative)
    async def claim_unpublished_outbox_events(self, limit: int = DEFAULT_OUTBOX_LIMIT) -> list[OutboxRecord]:
        """Stamp published_at on at most `limit` events and return them, by (workflow_run_id, sequence).

        Two concurrent claims never get one event. An event is handed out only if every earlier event of its run is
        published, dead-lettered or handed out by the same call. Selection: runs in rotation (a cursor over run ids that
        the process keeps and wraps around), from each its first event, then from each its second, until `limit`.
        """
        ...

    @checked(ids=sequence(key))
    async def release_outbox_events(self, ids: Sequence[str]) -> None:
        """Clear published_at. Unknown ids are ignored; empty: no-op. It ends a lease on those events too."""
        ...

    @checked(ids=sequence(key))
    async def mark_outbox_events_published(self, ids: Sequence[str]) -> None:
        """Stamp published_at. Unknown ids are ignored; empty: no-op."""
        ...

    @checked(id=key)
    async def increment_outbox_retry_count(self, id: str) -> int:
        """Raise retry_count by one and return it. Unknown id: NotFoundError."""
        ...

    @checked(id=key)
    async def move_outbox_event_to_dlq(self, id: str) -> None:
        """Stamp dlq_at: the event is a dead letter and no longer holds up its run. Unknown id: NotFoundError."""
        ...

    @checked(max_events=non_negative)
    async def replay_dlq_events(self, max_events: int) -> int:
        """Make the oldest dead letters claimable again and return how many.

        Clears dlq_at and published_at and sets retry_count to 0; sequences stay.
        """
        ...


@runtime_checkable
class SupportsOutboxLease(Protocol):
    """Leases on outbox events: nothing is lost when a relay dies between claim and emit."""

    @checked(limit=non_negative, lease=outbox_lease)
    async def lease_outbox_events(
        self, limit: int = DEFAULT_OUTBOX_LIMIT, lease: timedelta = DEFAULT_OUTBOX_LEASE
    ) -> OutboxLease:
        """Take events as claim_unpublished_outbox_events does, but only for the span of `lease`.

        While the lease lives no other claim or lease takes an event of its runs. Events that are not confirmed when it
        expires are claimable again. Leased events read as unpublished: published_at None.
        """
        ...

    @checked(token=key, ids=sequence(key))
    async def confirm_outbox_events(self, token: str, ids: Sequence[str]) -> int:
        """Stamp published_at on the events that the lease still holds and return how many; a late confirm gives 0."""
        ...

    @checked(token=key)
    async def release_outbox_lease(self, token: str) -> None:
        """Make the unconfirmed events of the lease claimable at once. An unknown or ended lease: no-op."""
        ...
