"""Claiming for a worker: in batches where the queue can, never mistaking trouble for an empty queue."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeAlias

import anyio

from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import JobQueue, SupportsDequeueMany, SupportsWaiting
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.runtime.backoff import Backoff
from workflow_adapters.runtime.claim_in_flight import ClaimInFlight
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.settings import WorkerSettings
from workflow_adapters.runtime.task_groups import open_task_group
from workflow_adapters.runtime.trouble import TROUBLE

GiveBack: TypeAlias = Callable[[list[DequeueResult], float], Awaitable[None]]
"""Gives claimed jobs back that no handler will see; with the monotonic instant at which their claim was sent."""


class Claims:
    """Hands out claimed jobs with the monotonic instant at which their claim was sent.

    A claim that is cut off half-way may have happened, and its jobs would wait for the end of their lease. So a claim
    in flight is awaited through cancels, for `grace` at most, and what it took is given back.
    """

    def __init__(
        self,
        queue: JobQueue,
        settings: WorkerSettings,
        stopping: anyio.Event,
        observation: Observation,
        give_back: GiveBack,
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._stopping = stopping
        self._observation = observation
        self._give_back = give_back
        self._trouble = Backoff()
        self._empty = Backoff(timedelta(milliseconds=5), settings.poll_interval)
        self._woken = False
        self._in_flight: ClaimInFlight[list[DequeueResult]] | None = None

    def hurry(self) -> None:
        """Give a claim in flight `grace` to end."""
        if self._in_flight is not None:
            self._in_flight.hurry()

    async def take(self, limit: int) -> tuple[list[DequeueResult], float]:
        """Claim up to `limit` jobs; [] after a pause when there was none, or trouble."""
        sent = time.monotonic()
        try:
            claimed = await self._claim_to_the_end(limit, sent)
        except TROUBLE as error:
            self._observation.note(Event.CLAIM_FAILED, f"a claim failed: {error!r}", error=repr(error))
            await self._trouble.pause(self._stopping)
            return [], sent
        self._trouble.reset()
        if claimed:
            self._empty.reset()
            self._woken = False
        elif not self._stopping.is_set():
            await self._wait()
        return claimed, sent

    async def _claim_to_the_end(self, limit: int, sent: float) -> list[DequeueResult]:
        async def give_back(jobs: list[DequeueResult]) -> None:
            await self._give_back(jobs, sent)

        self._in_flight = ClaimInFlight(
            lambda: self._claim(limit),
            give_back,
            timeout=self._settings.lease.total_seconds(),
            patience=self._settings.grace.total_seconds(),
        )
        try:
            return await self._in_flight.answer()
        finally:
            self._in_flight = None

    async def _claim(self, limit: int) -> list[DequeueResult]:
        if limit > 1 and supports(self._queue, SupportsDequeueMany):
            return await self._queue.dequeue_many(limit, self._settings.serves)
        claimed = await self._queue.dequeue(self._settings.serves)
        return [] if claimed is None else [claimed]

    async def _wait(self) -> None:
        # wait_for_jobs does not know what we serve or which groups are full: where it woke us for nothing, a growing
        # pause keeps a queue that has work only for others from being claimed in a tight loop.
        pause = 0.0
        if self._woken or not supports(self._queue, SupportsWaiting):
            pause = self._empty.draw()
            with anyio.move_on_after(pause):
                await self._stopping.wait()
        else:
            self._empty.reset()
        rest = self._settings.poll_interval.total_seconds() - pause
        if rest > 0 and not self._stopping.is_set() and supports(self._queue, SupportsWaiting):
            self._woken = await self._wait_for_jobs(self._queue, rest)

    async def _wait_for_jobs(self, queue: SupportsWaiting, seconds: float) -> bool:
        woken = False
        async with open_task_group() as tasks:

            async def stop_waiting() -> None:
                await self._stopping.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(stop_waiting)
            try:
                woken = await queue.wait_for_jobs(timedelta(seconds=seconds))
            except TROUBLE as error:
                self._observation.note(Event.CLAIM_FAILED, f"waiting for jobs failed: {error!r}", error=repr(error))
                await self._trouble.pause(self._stopping)
            tasks.cancel_scope.cancel()
        return woken
