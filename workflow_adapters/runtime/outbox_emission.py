"""Emitting the events of one run in order, with retries that are remembered between passes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio

from workflow_adapters.errors import BackendError, NotFoundError
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.runtime.backoff import Backoff
from workflow_adapters.runtime.event_loop import current_asyncio_task
from workflow_adapters.runtime.observation import Event, Observation, describe

Published = Callable[[OutboxRecord], Awaitable[None]]


class Retries:
    """When a run that failed may be tried again by this relay; how often an event may fail is durable (retry_count)."""

    def __init__(self, max_attempts: int) -> None:
        self.max_attempts = max_attempts
        self._not_before: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}

    def waiting(self, run_id: str) -> bool:
        return self._not_before.get(run_id, 0) > time.monotonic()

    def failed(self, run_id: str) -> None:
        backoff = self._backoffs.setdefault(run_id, Backoff())
        self._not_before[run_id] = time.monotonic() + backoff.draw()

    def succeeded(self, run_id: str) -> None:
        self._not_before.pop(run_id, None)
        self._backoffs.pop(run_id, None)


class Emission:
    """Emits runs for one relay."""

    def __init__(
        self,
        persistence: WorkflowPersistence,
        sink: Published,
        retries: Retries,
        observation: Observation,
    ) -> None:
        self._persistence = persistence
        self._sink = sink
        self._retries = retries
        self._observation = observation
        self.dead: set[str] = set()

    async def emit_run(self, events: list[OutboxRecord], published: Published, deadline: float) -> int:
        """Emit in order until one fails or the lease nears its end; returns how many went out or died."""
        done = 0
        for event in events:
            if self._retries.waiting(event.workflow_run_id) or time.monotonic() >= deadline:
                break
            error = await self._emit(event, deadline)
            if error is None:
                self._retries.succeeded(event.workflow_run_id)
                await self._confirm(event, published, deadline)
                self._observation.note(Event.EVENT_PUBLISHED, f"published {_name(event)}", event_id=event.id)
            elif not await self._give_up(event, error):
                break
            done += 1
        return done

    async def _emit(self, event: OutboxRecord, deadline: float) -> str | None:
        try:
            with anyio.fail_after(None if deadline == float("inf") else max(deadline - time.monotonic(), 0)):
                await self._sink(event)
        except anyio.get_cancelled_exc_class():
            if _is_cancelled():
                raise
            return "the sink ended with a cancellation that nobody had asked for"
        except Exception as error:  # noqa: BLE001  # whatever a sink raises is that event's failure, not the relay's
            return describe(error)
        return None

    async def _confirm(self, event: OutboxRecord, published: Published, deadline: float) -> None:
        backoff = Backoff()
        while True:
            try:
                await published(event)
            except BackendError as error:
                # Emitted but not confirmed: a second emit is what is left if this goes on past the lease.
                if time.monotonic() >= deadline:
                    raise
                self._observation.note(
                    Event.RELAY_FAILED, f"confirming {_name(event)} failed: {error!r}", error=repr(error)
                )
                await backoff.pause()
            else:
                return

    async def _give_up(self, event: OutboxRecord, error: str) -> bool:
        """Count the failure; True when the event became a dead letter and its run may go on."""
        try:
            count = await self._persistence.increment_outbox_retry_count(event.id)
            if count < self._retries.max_attempts:
                self._retries.failed(event.workflow_run_id)
                self._observation.note(
                    Event.EVENT_RETRIED,
                    f"{_name(event)} failed {count} times: {error}",
                    event_id=event.id,
                    error=error,
                    retry_count=count,
                )
                return False
            await self._persistence.move_outbox_event_to_dlq(event.id)
        except NotFoundError:
            return True  # purged meanwhile: nobody waits for it
        self.dead.add(event.id)
        self._observation.note(
            Event.EVENT_DEAD,
            f"{_name(event)} is a dead letter after {count} failures: {error}",
            event_id=event.id,
            error=error,
        )
        return True


def _is_cancelled() -> bool:
    """Whether somebody has cancelled the running task. On asyncio a cancellation may also be raised by anybody."""
    task = current_asyncio_task()
    return task is None or task.cancelling() > 0


def _name(event: OutboxRecord) -> str:
    return f"event {event.id} ({event.workflow_run_id} #{event.sequence} {event.event_type})"
