"""Retention: deletes what has been finished for long enough, in small batches that can be interrupted anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio

from workflow_adapters.clock import Clock, SystemClock
from workflow_adapters.ports.adapters import Ports
from workflow_adapters.records.status import PURGEABLE_STATUSES
from workflow_adapters.runtime.loop import Loop
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.validation import non_negative_span, normalise, optional

CALL_TIMEOUT = 60
"""Seconds that one batch may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long finished rows are kept; None keeps them for ever."""

    runs: timedelta | None = None
    jobs: timedelta | None = None
    published_events: timedelta | None = None
    dead_events: timedelta | None = None
    completed_keys: timedelta | None = None
    abandoned_keys: timedelta | None = None
    ai_calls: timedelta | None = None

    def __post_init__(self) -> None:
        span = optional(non_negative_span)
        normalise(
            self,
            runs=span,
            jobs=span,
            published_events=span,
            dead_events=span,
            completed_keys=span,
            abandoned_keys=span,
            ai_calls=span,
        )


class Purger(Loop):
    """Deletes by `retention`: runs with all they own and their jobs, then the other tables, oldest first.

    Each batch is a call of its own, at most `batch` rows (runs are deleted one by one), so a purge may be stopped and
    started again, and several may run at once.
    """

    def __init__(
        self,
        adapters: Ports,
        retention: Retention,
        *,
        batch: int = 500,
        every: timedelta = timedelta(minutes=10),
        clock: Clock | None = None,
    ) -> None:
        super().__init__(self._pass, every, Observation("purger"), Event.PURGER_FAILED)
        self._adapters = adapters
        self._retention = retention
        self._batch = batch
        self._clock = clock or SystemClock()

    async def _pass(self) -> bool:
        await self.purge()
        return False

    async def purge(self, progress: Callable[[str, int], None] | None = None) -> Counter[str]:
        """Delete what is due and return the rows deleted per table; `progress` hears of each batch."""
        deleted: Counter[str] = Counter()
        for name, age, batch in self._tables():
            if age is None:
                continue
            cutoff = time_before(self._clock.now(), age)
            while True:
                with anyio.fail_after(CALL_TIMEOUT):
                    count = await batch(cutoff)
                deleted[name] += count
                if progress is not None:
                    progress(name, count)
                if count < self._batch:
                    break
            if deleted[name]:
                self.observation.note(
                    Event.ROWS_PURGED, f"{deleted[name]} {name} deleted", table=name, rows=deleted[name]
                )
        return deleted

    def _tables(self) -> list[tuple[str, timedelta | None, Callable[[datetime], Awaitable[int]]]]:
        keep = self._retention
        operations = self._adapters.operations
        limit = self._batch
        return [
            ("runs", keep.runs, self._purge_runs),
            ("jobs", keep.jobs, lambda cutoff: operations.purge_jobs(cutoff, limit)),
            ("published_events", keep.published_events, lambda cutoff: operations.purge_outbox_events(cutoff, limit)),
            ("dead_events", keep.dead_events, lambda cutoff: operations.purge_dead_outbox_events(cutoff, limit)),
            ("completed_keys", keep.completed_keys, partial(self._purge_keys, True)),  # as the port has it
            ("abandoned_keys", keep.abandoned_keys, partial(self._purge_keys, False)),  # as the port has it
            ("ai_calls", keep.ai_calls, lambda cutoff: operations.purge_ai_calls(cutoff, limit)),
        ]

    async def _purge_keys(self, completed: bool, cutoff: datetime) -> int:
        return await self._adapters.operations.purge_idempotency_keys(completed, cutoff, self._batch)

    async def _purge_runs(self, cutoff: datetime) -> int:
        runs = await self._adapters.persistence.list_runs_for_purge(cutoff, sorted(PURGEABLE_STATUSES), self._batch)
        for run in runs:
            jobs = await self._adapters.job_queue.get_jobs_by_workflow_run(run.id)
            await self._adapters.job_queue.delete_by_run_and_stages(run.id, [job.stage_id for job in jobs])
            await self._adapters.persistence.delete_run(run.id)
        return len(runs)


def time_before(now: datetime, age: timedelta) -> datetime:
    """The instant that long ago, no further back than datetimes reach."""
    first = datetime.min.replace(tzinfo=UTC)
    return now - age if age <= now - first else first
