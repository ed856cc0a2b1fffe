"""Sinks and persistences to try a relay on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import anyio

from tests.worked_examples.examples import event
from workflow_adapters import Adapters, OutboxRecord

LEASE = timedelta(milliseconds=300)
QUICK: dict[str, Any] = {"lease": LEASE, "every": timedelta(milliseconds=10)}


class Sink:
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.seen: list[OutboxRecord] = []
        self.broken: set[str] = set()
        self.error: type[BaseException] = RuntimeError

    async def __call__(self, event: OutboxRecord) -> None:
        if event.workflow_run_id in self.broken:
            raise self.error
        self.seen.append(event)

    def order(self, run_id: str) -> list[int]:
        return [event.sequence for event in self.seen if event.workflow_run_id == run_id]


class NoLease:
    """A persistence of a third party that has no SupportsOutboxLease."""

    _HIDDEN = ("lease_outbox_events", "confirm_outbox_events", "release_outbox_lease")

    def __init__(self, persistence: Any) -> None:
        self._persistence = persistence

    def __getattr__(self, name: str) -> Any:
        if name in self._HIDDEN:
            raise AttributeError(name)
        return getattr(self._persistence, name)


class Troubled:
    """A persistence whose database fails the calls that `troubles` names, and answers those in `late` later."""

    def __init__(self, persistence: Any) -> None:
        self._persistence = persistence
        self.troubles: dict[str, Exception] = {}
        self.failed: list[str] = []
        self.late: set[str] = set()
        self.seconds_late = 0.1
        for name in dir(persistence):
            if not name.startswith("_"):
                setattr(self, name, self._failing(name))

    def _failing(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any) -> Any:
            if name in self.troubles:
                self.failed.append(name)
                raise self.troubles[name]
            answer = await getattr(self._persistence, name)(*args)
            if name in self.late:
                await anyio.sleep(self.seconds_late)
            return answer

        return call


async def append(adapters: Adapters, **counts: int) -> None:
    for run_id, count in counts.items():
        await adapters.persistence.append_outbox_events([event(run_id, payload=n) for n in range(count)])


async def open_events(adapters: Adapters) -> int:
    """Events that still have to go out, leased ones too."""
    stats = await adapters.operations.outbox_stats()
    return stats.unpublished + stats.leased
