"""outbox_events: appending, claiming and leasing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.outbox import DEFAULT_OUTBOX_LEASE, DEFAULT_OUTBOX_LIMIT, CreateOutboxEventInput
from workflow_adapters.ports.outbox import Outbox, SupportsOutboxLease
from workflow_adapters.postgres.detect import PostgresFacts
from workflow_adapters.postgres.outbox_append import append_by_function, append_under_locks
from workflow_adapters.postgres.outbox_selection import MARKER_TAKEN, RECOVERED, select_events
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord
from workflow_adapters.sql.outbox import SqlOutbox
from workflow_adapters.sql.outbox_lease import LEASE_OFFSET, lease_token, read_events
from workflow_adapters.sql.results import ATTEMPTS, lost_race
from workflow_adapters.sql.statement import Operation

_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(slots=True)
class OutboxTurns:
    """What the outboxes of one bundle share: the run that was served last, and the markers of its leases."""

    last_run: str = ""
    used_markers: set[datetime] = field(default_factory=set[datetime])

    def marker(self, at_least: datetime, now: datetime) -> datetime:
        """A marker that no lease of this bundle has had: a token that outlives its lease never fits another."""
        self.used_markers = {marker for marker in self.used_markers if marker > now + LEASE_OFFSET}
        while at_least in self.used_markers:
            at_least += _MILLISECOND
        self.used_markers.add(at_least)
        return at_least

    def served(self, events: Sequence[OutboxRecord]) -> None:
        """The next selection begins after the run that was the last to give an event."""
        laps: dict[str, int] = {}
        for event in events:
            laps[event.workflow_run_id] = laps.get(event.workflow_run_id, 0) + 1
        if laps:
            started_after = self.last_run.encode()
            self.last_run = max(laps, key=lambda run: (laps[run], run.encode() <= started_after, run.encode()))


@enforces(Outbox, SupportsOutboxLease)
class PostgresOutbox(SqlOutbox):
    _turns: OutboxTurns

    async def append_outbox_events(self, events: Sequence[CreateOutboxEventInput]) -> None:
        if not events:
            return
        now = self._database.now()
        if await self._owns_schema():
            await self._database.write(lambda: append_by_function(events, now), single=True)
        else:
            await self._database.write(lambda: append_under_locks(events, now))

    async def claim_unpublished_outbox_events(self, limit: int = DEFAULT_OUTBOX_LIMIT) -> list[OutboxRecord]:
        now = self._database.now()
        return await self._select(now, limit, now, leases=False) or []

    async def lease_outbox_events(
        self, limit: int = DEFAULT_OUTBOX_LIMIT, lease: timedelta = DEFAULT_OUTBOX_LEASE
    ) -> OutboxLease:
        now = self._database.now()
        for attempt in range(ATTEMPTS):
            marker = self._turns.marker(now + LEASE_OFFSET + lease + attempt * _MILLISECOND, now)
            events = await self._select(now, limit, marker, leases=True)
            if events is not None:
                return OutboxLease(token=lease_token(marker), expires_at=marker - LEASE_OFFSET, events=tuple(events))
        raise lost_race("the marker of the lease")

    async def _select(self, now: datetime, limit: int, stamp: datetime, *, leases: bool) -> list[OutboxRecord] | None:
        """Take events; None where another lease has this very stamp."""
        if limit == 0:
            return []
        owned = await self._owns_schema()

        def operation() -> Operation[list[OutboxRecord] | None]:
            after = self._turns.last_run
            for recovers in (True, False):
                rows = yield select_events(now, limit, after, stamp, leases=leases, recovers=recovers, owned=owned)
                if rows[0][0] == MARKER_TAKEN:
                    return None
                if rows[0][0] != RECOVERED:
                    break
            return read_events([row[1:] for row in rows if row[1] is not None], now)

        events = await self._database.write(operation, single=True)
        self._turns.served(events or [])
        return events

    async def _owns_schema(self) -> bool:
        facts = await self._database.facts()
        return isinstance(facts, PostgresFacts) and facts.owned
