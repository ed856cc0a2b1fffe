"""What a bundle remembers of the outbox between its claims and leases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.sql.outbox_lease import LEASE_OFFSET

MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(slots=True)
class OutboxRotation:
    """Shared by the adapters of one bundle, those of its transactions included."""

    last_run: str = ""
    """The run whose event was selected last: the next selection starts after it."""

    used_markers: set[datetime] = field(default_factory=set[datetime])
    """Markers of leases that this process has taken and that would still live. A marker is used once, so that a token
    which outlives its lease never fits another."""

    def marker(self, at_least: datetime, now: datetime) -> datetime:
        """The first marker that no lease of this process has or had, of those that are not forgotten yet."""
        self.used_markers = {marker for marker in self.used_markers if marker > now + LEASE_OFFSET}
        while at_least in self.used_markers:
            at_least += MILLISECOND
        self.used_markers.add(at_least)
        return at_least

    def served(self, events: Sequence[OutboxRecord]) -> None:
        """Note the run that was the last to give an event, of events in the order of their runs."""
        laps: dict[str, int] = {}
        for event in events:
            laps[event.workflow_run_id] = laps.get(event.workflow_run_id, 0) + 1
        if laps:
            started_after = self.last_run.encode()
            self.last_run = max(laps, key=lambda run: (laps[run], run.encode() <= started_after, run.encode()))
