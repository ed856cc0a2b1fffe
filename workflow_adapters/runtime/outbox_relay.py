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
from anyio.lowlevel import checkpoint_if_cancelled

from workflow_adapters.inputs.outbox import DEFAULT_OUTBOX_LEASE, DEFAULT_OUTBOX_LIMIT
from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.outbox import SupportsOutboxLease
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord
from workflow_adapters.runtime.claim_in_flight import ClaimInFlight
from workflow_adapters.runtime.loop import Loop
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.outbox_emission import Emission, Pass, Retries
from workflow_adapters.runtime.task_groups import open_task_group
from workflow_adapters.runtime.trouble import TROUBLE

Sink = Callable[[OutboxRecord], Awaitable[None]]
"""Publishes one event; it returns when the event is safe elsewhere, and raises when it is not."""

SAFETY = 0.1
"""Share of a lease that is left for the confirmation."""

CALL_TIMEOUT = 60
"""Seconds that a claim without a lease may take."""

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
        # Claimed without a lease and neither published nor dead: to be released.
        self._claimed: dict[str, None] = {}
        self._emission = Emission(persistence, sink, Retries(max_attempts), self.observation)

    async def relay(self) -> bool:
        """One pass; True when it published something, so that there may be more."""
        if supports(self._persistence, SupportsOutboxLease):
            return await self._relay_leased(self._persistence)
        return await self._relay_claimed()

    async def _relay_leased(self, outbox: SupportsOutboxLease) -> bool:
        async def give_back(lease: OutboxLease) -> None:
            await self._give_back(lambda: outbox.release_outbox_lease(lease.token), "their lease ends")

        sent = time.monotonic()
        seconds = self._lease.total_seconds()
        claim = ClaimInFlight(
            lambda: outbox.lease_outbox_events(self._batch, self._lease), give_back, timeout=seconds, patience=CLEAN_UP
        )
        lease = await claim.answer()
        deadline = sent + seconds * (1 - SAFETY)

        async def confirm(event: OutboxRecord) -> None:
            await outbox.confirm_outbox_events(lease.token, [event.id])

        try:
            return await self._emit_all(lease.events, Pass(deadline, confirm, dead=lambda event: None)) > 0
        except BaseException:
            await give_back(lease)
            raise

    async def _relay_claimed(self) -> bool:
        async def give_back(events: Sequence[OutboxRecord]) -> None:
            self._claimed = {event.id: None for event in events}
            await self._give_back(self._release, "the next pass begins")

        if self._claimed:
            await self._release()  # before a later event of their runs can be claimed
        claim = ClaimInFlight(
            lambda: self._persistence.claim_unpublished_outbox_events(self._batch),
            give_back,
            timeout=CALL_TIMEOUT,
            patience=CLEAN_UP,
        )
        events = await claim.answer()
        if not events:
            return False
        claimed = self._claimed = {event.id: None for event in events}
        ids = list(claimed)
        self.observation.note(
            Event.EVENTS_CLAIMED_WITHOUT_LEASE, f"claimed, not emitted yet: {', '.join(ids)}", ids=ids
        )

        async def published(event: OutboxRecord) -> None:
            del claimed[event.id]

        try:
            done = await self._emit_all(events, Pass(float("inf"), published, dead=lambda event: claimed.pop(event.id)))
        except BaseException:
            await self._give_back(self._release, "the next pass begins")
            raise
        await self._release()
        return done > 0

    async def _release(self) -> None:
        await self._persistence.release_outbox_events(list(self._claimed))
        self._claimed.clear()

    async def _give_back(self, release: Callable[[], Awaitable[None]], otherwise: str) -> None:
        """Release what has not gone out; what ends the pass is on its way, and no trouble here may take its place."""
        try:
            with anyio.fail_after(CLEAN_UP, shield=True):
                await release()
        except Exception as error:  # noqa: BLE001  # whatever a release raises, a cancellation goes before it
            self.observation.note(
                Event.RELAY_FAILED,
                f"events could not be given back and wait until {otherwise}: {error!r}",
                error=repr(error),
                ids=list(self._claimed),
            )

    async def _emit_all(self, events: Sequence[OutboxRecord], one_pass: Pass) -> int:
        await checkpoint_if_cancelled()  # a sink need not be asked then
        counts: list[int] = []
        errors: list[Exception] = []

        async def emit(run: list[OutboxRecord]) -> None:
            try:
                counts.append(await self._emission.emit_run(run, one_pass))
            except Exception as error:  # noqa: BLE001  # raised below, where no task group wraps it
                errors.append(error)

        async with open_task_group() as runs:
            for _, run in groupby(events, key=lambda event: event.workflow_run_id):
                runs.start_soon(emit, list(run))
        if errors:
            # A fault of the program before trouble, which would be taken as passing.
            raise min(errors, key=lambda error: isinstance(error, TROUBLE))
        return sum(counts)
