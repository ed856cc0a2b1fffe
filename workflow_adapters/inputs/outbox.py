"""Inputs for outbox_events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.json_values import JsonValue, json_value
from workflow_adapters.validation import instant, key, normalise, span

DEFAULT_OUTBOX_LIMIT: Final = 100
DEFAULT_OUTBOX_LEASE: Final = timedelta(seconds=30)
MAX_OUTBOX_LEASE: Final = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOutboxEventInput:
    """An event to publish. Its sequence within the run is assigned when it is appended."""

    workflow_run_id: str
    event_type: str
    payload: JsonValue
    causation_id: str
    occurred_at: datetime

    def __post_init__(self) -> None:
        normalise(
            self,
            workflow_run_id=key,
            event_type=key,
            payload=json_value,
            causation_id=key,
            occurred_at=instant,
        )


def outbox_lease(field: str, value: object) -> timedelta:
    """Check the length of an outbox lease: 1 ms to 365 days (stamps of leases lie in a window of 500 years)."""
    lease = span(field, value)
    if not timedelta(0) < lease <= MAX_OUTBOX_LEASE:
        raise InvalidValueError(field, field, "must be from 1 millisecond to 365 days")
    return lease
