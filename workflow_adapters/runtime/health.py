"""What a health endpoint tells of a running service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from workflow_adapters.ports.capabilities import supports
from workflow_adapters.runtime.observation import Event
from workflow_adapters.runtime.service import WorkflowService


@runtime_checkable
class SupportsListenerState(Protocol):
    """A bundle that is told of new jobs by its database."""

    @property
    def listener_state(self) -> Any:
        """How that connection is: off, connecting, listening."""
        ...


async def look(service: WorkflowService) -> dict[str, Any]:
    """Queue depth, ages (seconds), lease losses, outbox lag, listener; the ages are judged by this host's clock."""
    queue = await service.adapters.operations.queue_stats()
    outbox = await service.adapters.operations.outbox_stats()
    now = datetime.now(UTC)
    loops = {loop.observation.name: _counts(loop.observation.counts) for loop in service.loops}
    bundle = service.adapters
    return {
        "ready": service.worker.working,
        "reason": None if service.worker.working else "the worker is not running",
        "queue": {
            "depth": {status.value: count for status, count in queue.by_status.items()},
            "oldest_due_seconds": _age(queue.oldest_due_at, now),
            "oldest_heartbeat_seconds": _age(queue.oldest_locked_at, now),
        },
        "outbox": {
            "unpublished": outbox.unpublished,
            "lag_seconds": _age(outbox.oldest_unpublished_at, now),
            "leased": outbox.leased,
            "dead": outbox.dead,
        },
        "worker": {
            "running": service.worker.running,
            "leases_lost": service.worker.observation.counts[Event.LEASE_LOST],
            "counts": _counts(service.worker.observation.counts),
        },
        "loops": loops,
        "listener": str(bundle.listener_state.value) if supports(bundle, SupportsListenerState) else None,
    }


def _counts(counts: dict[Event, int]) -> dict[str, int]:
    return {event.value: count for event, count in sorted(counts.items())}


def _age(instant: datetime | None, now: datetime) -> float | None:
    return None if instant is None else round(max((now - instant).total_seconds(), 0), 3)
