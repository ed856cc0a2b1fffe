"""What a bundle remembers of the outbox between its claims and leases."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class OutboxRotation:
    """Shared by the adapters of one bundle, those of its transactions included."""

    last_run: str = ""
    """The run whose event was selected last: the next selection starts after it."""

    used_markers: set[datetime] = field(default_factory=set[datetime])
    """Markers of leases that this process has taken and that would still live. A marker is used once, so that a token
    which outlives its lease never fits another."""

    def forget_markers(self, expired: datetime) -> None:
        """Drop the markers of leases that have expired: those up to `expired`."""
        self.used_markers = {marker for marker in self.used_markers if marker > expired}
