"""Emitting the events of one run in order, with retries that are remembered between passes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import takewhile

import anyio

from workflow_adapters.errors import NotFoundError
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.runtime.backoff import Backoff
from workflow_adapters.runtime.event_loop import current_asyncio_task
from workflow_adapters.runtime.observation import Event, Observation, describe
from workflow_adapters.runtime.trouble import TROUBLE
from workflow_adapters.wording import counted

Published = Callable[[OutboxRecord], Awaitable[None]]


FORGOTTEN_AFTER = 600
"""Seconds after which a run is forgotten that was not tried again, since another relay or a person took care of it."""


@dataclass(slots=True)
class _Failing:
    backoff: Backoff
    not_before: float


class Retries:
    """When a run that failed may be tried again by this relay; how often an event may fail is durable (retry_count)."""

    def __init__(self, max_attempts: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.max_attempts = max_attempts
        self._monotonic = monotonic
        # Nearly in the order of their last failures.
        self._failing: dict[str, _Failing] = {}

    @property
    def remembered(self) -> int:
        """Runs that are known to fail."""
        return len(self._failing)

    def waiting(self, run_id: str) -> bool:
        failing = self._failing.get(run_id)
        return failing is not None and failing.not_before > self._monotonic()

    def failed(self, run_id: str) -> None:
        now = self._monotonic()
        known = self._failing.pop(run_id, None)
        backoff = Backoff() if known is None else known.backoff
        self._failing[run_id] = _Failing(backoff, now + backoff.draw())
        for old in list(takewhile(lambda one: self._failing[one].not_before < now - FORGOTTEN_AFTER, self._failing)):
            del self._failing[old]

    def settled(self, run_id: str) -> None:
        """The run's first event went out, became a dead letter, or is gone: the next one starts afresh."""
        self._failing.pop(run_id, None)


@dataclass(slots=True)
class Pass:
    """One pass of a relay: until when it may emit (monotonic), and whom it tells that an event needs it no more."""

    deadline: float
    published: Published
    dead: Callable[[OutboxRecord], None]


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

    async def emit_run(self, events: list[OutboxRecord], one_pass: Pass) -> int:
        """Emit in order until one fails or the pass has to end; returns how many went out or died.

        One of `TROUBLE` when the database fails while an event is confirmed, counted or moved; that event and those
        after it go out again.
        """
        done = 0
        for event in events:
            if self._retries.waiting(event.workflow_run_id) or time.monotonic() >= one_pass.deadline:
                break
            error = await self._emit(event, one_pass.deadline)
            if error is None:
                await self._confirm(event, one_pass)
                self._observation.note(Event.EVENT_PUBLISHED, f"published {_name(event)}", event_id=event.id)
            elif await self._give_up(event, error):
                one_pass.dead(event)
            else:
                break
            self._retries.settled(event.workflow_run_id)
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

    async def _confirm(self, event: OutboxRecord, one_pass: Pass) -> None:
        backoff = Backoff()
        while True:
            try:
                await one_pass.published(event)
            except TROUBLE as error:
                # Emitted but not confirmed: a second emit is what is left if this goes on past the lease.
                if time.monotonic() >= one_pass.deadline:
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
                    f"{_name(event)} failed {counted(count, 'time')}: {error}",
                    event_id=event.id,
                    error=error,
                    retry_count=count,
                )
                return False
            await self._persistence.move_outbox_event_to_dlq(event.id)
        except NotFoundError:
            return True  # purged meanwhile: nobody waits for it
        self._observation.note(
            Event.EVENT_DEAD,
            f"{_name(event)} is a dead letter after {counted(count, 'failure')}: {error}",
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
