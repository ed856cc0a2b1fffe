"""outbox_events: appending, claiming and leasing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.outbox import DEFAULT_OUTBOX_LEASE, DEFAULT_OUTBOX_LIMIT, CreateOutboxEventInput
from workflow_adapters.ports.outbox import Outbox, SupportsOutboxLease
from workflow_adapters.postgres.detect import PostgresFacts
from workflow_adapters.postgres.outbox_append import append_by_function, append_under_locks
from workflow_adapters.postgres.outbox_selection import MARKER_TAKEN, RECOVERED, select_events
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord
from workflow_adapters.sql.outbox import SqlOutbox
from workflow_adapters.sql.outbox_lease import LEASE_OFFSET, lease_token, read_events
from workflow_adapters.sql.outbox_rotation import MILLISECOND, OutboxRotation
from workflow_adapters.sql.results import ATTEMPTS, lost_race
from workflow_adapters.sql.statement import Operation


@enforces(Outbox, SupportsOutboxLease)
class PostgresOutbox(SqlOutbox):
    _rotation: OutboxRotation

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
            marker = self._rotation.marker(now + LEASE_OFFSET + lease + attempt * MILLISECOND, now)
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
            after = self._rotation.last_run
            for recovers in (True, False):
                rows = yield select_events(now, limit, after, stamp, leases=leases, recovers=recovers, owned=owned)
                if rows[0][0] == MARKER_TAKEN:
                    return None
                if rows[0][0] != RECOVERED:
                    break
            return read_events([row[1:] for row in rows if row[1] is not None], now)

        events = await self._database.write(operation, single=True)
        self._rotation.served(events or [])
        return events

    async def _owns_schema(self) -> bool:
        facts = await self._database.facts()
        return isinstance(facts, PostgresFacts) and facts.owned
