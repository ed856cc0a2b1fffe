"""Rows of outbox_events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRecord:
    """One event of a run. `published_at` is None while the event is unpublished or only leased."""

    id: str
    workflow_run_id: str
    sequence: int
    event_type: str
    payload: JsonValue
    causation_id: str
    occurred_at: datetime
    published_at: datetime | None
    retry_count: int
    dlq_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxLease:
    """Events that are ours to emit until `expires_at`; an empty lease holds nothing and needs no release."""

    token: str
    expires_at: datetime
    events: tuple[OutboxRecord, ...]
