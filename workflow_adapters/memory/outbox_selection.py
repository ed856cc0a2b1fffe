"""Which outbox events a claim or a lease takes: whole prefixes of runs, from many runs rather than many from one."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime

from workflow_adapters.memory.rows import OutboxRow
from workflow_adapters.memory.session import OutboxRotation
from workflow_adapters.memory.tables import Tables


def is_leased(row: OutboxRow, now: datetime) -> bool:
    """Whether the event is under a lease that lives."""
    return row.lease_expires_at is not None and row.lease_expires_at > now


def select_events(tables: Tables, rotation: OutboxRotation, now: datetime, limit: int) -> list[OutboxRow]:
    """At most `limit` events, in the order of their selection, and move the rotation on.

    The unpublished events of a run in their order are what may be handed out: everything before them is published or
    dead. A run of which one event is leased is left out whole. Runs take turns, starting after the run that was served
    last: from each its first event, then from each its second, and so on.
    """
    run_ids = _rotated(sorted(tables.outbox.unpublished.buckets()), rotation.last_run)
    unpublished = [tables.outbox.unpublished[run_id] for run_id in run_ids]
    queues = [events for events in unpublished if not any(is_leased(row, now) for row in events)]
    selected: list[OutboxRow] = []
    lap = 0
    while queues and len(selected) < limit:
        selected.extend(events[lap] for events in queues[: limit - len(selected)])
        lap += 1
        queues = [events for events in queues if len(events) > lap]
    if selected:
        rotation.last_run = selected[-1].event.workflow_run_id
    return selected


def _rotated(run_ids: list[str], last_run: str) -> list[str]:
    start = bisect_right(run_ids, last_run)
    return run_ids[start:] + run_ids[:start]
