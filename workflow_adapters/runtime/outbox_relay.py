"""Publishes outbox events: at least once, in order per run, nothing lost when the relay dies.

On a persistence with SupportsOutboxLease any number of relays may run. Without it the relay claims and releases: order
holds with one relay at a time, and events claimed by a relay that dies before it emits them stay stamped as published.
So it logs their ids before it emits (event ``events_claimed_without_lease``); ``workflow-adapters outbox release ID…``
hands them back.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from itertools import groupby

import anyio

from workflow_adapters.inputs.outbox import DEFAULT_OUTBOX_LEASE, DEFAULT_OUTBOX_LIMIT
from workflow_adapters.ports.outbox import SupportsOutboxLease
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.runtime.loop import Loop
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.outbox_emission import Emission, Retries
from workflow_adapters.runtime.task_groups import open_task_group

Sink = Callable[[OutboxRecord], Awaitable[None]]
"""Publishes one event; it returns when the event is safe elsewhere, and raises when it is not."""

SAFETY = 0.1
"""Share of a lease that is left for the confirmation."""

CLEAN_UP = 5
"""Seconds that giving events back may take when the relay is cancelled."""


class OutboxRelay(Loop):
    """Hands events to `sink`.

    A run whose event fails waits (its retries back off, by the lease at least) while other runs go on; after
    `max_attempts` failures the event becomes a dead letter and its run goes on. `sink` may see an event twice.
    """

    def __init__(
        self,
        persistence: WorkflowPersistence,
        sink: Sink,
        *,
        batch: int = DEFAULT_OUTBOX_LIMIT,
        lease: timedelta = DEFAULT_OUTBOX_LEASE,
        max_attempts: int = 10,
        every: timedelta = timedelta(seconds=1),
    ) -> None:
        super().__init__(self.relay, every, Observation("outbox relay"), Event.RELAY_FAILED)
        self._persistence = persistence
        self._batch = batch
        self._lease = lease
        self._emission = Emission(persistence, sink, Retries(max_attempts), self.observation)

    async def relay(self) -> bool:
        """One pass; True when it published something, so that there may be more."""
        if isinstance(self._persistence, SupportsOutboxLease):
            return await self._relay_leased(self._persistence)
        return await self._relay_claimed()

    async def _relay_leased(self, outbox: SupportsOutboxLease) -> bool:
        sent = time.monotonic()
        lease = await outbox.lease_outbox_events(self._batch, self._lease)
        deadline = sent + self._lease.total_seconds() * (1 - SAFETY)

        async def confirm(event: OutboxRecord) -> None:
            await outbox.confirm_outbox_events(lease.token, [event.id])

        try:
            return await self._emit_all(lease.events, confirm, deadline) > 0
        except BaseException:
            with anyio.move_on_after(CLEAN_UP, shield=True):
                await outbox.release_outbox_lease(lease.token)
            raise

    async def _relay_claimed(self) -> bool:
        events = await self._persistence.claim_unpublished_outbox_events(self._batch)
        if not events:
            return False
        ids = [event.id for event in events]
        self.observation.note(
            Event.EVENTS_CLAIMED_WITHOUT_LEASE, f"claimed, not emitted yet: {', '.join(ids)}", ids=ids
        )
        left = dict.fromkeys(ids)

        async def published(event: OutboxRecord) -> None:
            del left[event.id]

        try:
            return await self._emit_all(events, published, float("inf")) > 0
        finally:
            for dead in self._emission.dead:
                left.pop(dead, None)
            with anyio.move_on_after(CLEAN_UP, shield=True):
                await self._persistence.release_outbox_events(list(left))

    async def _emit_all(
        self, events: Sequence[OutboxRecord], published: Callable[[OutboxRecord], Awaitable[None]], deadline: float
    ) -> int:
        counts: list[int] = []

        async def emit(run: list[OutboxRecord]) -> None:
            counts.append(await self._emission.emit_run(run, published, deadline))

        async with open_task_group() as runs:
            for _, run in groupby(events, key=lambda event: event.workflow_run_id):
                runs.start_soon(emit, list(run))
        return sum(counts)
