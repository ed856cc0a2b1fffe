"""Claiming for a worker: in batches where the queue can, never mistaking trouble for an empty queue."""

from __future__ import annotations

import time
from datetime import timedelta

import anyio

from workflow_adapters.errors import BackendError
from workflow_adapters.ports.job_queue import JobQueue, SupportsDequeueMany, SupportsWaiting
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.runtime.backoff import Backoff
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.settings import WorkerSettings
from workflow_adapters.runtime.task_groups import open_task_group


class Claims:
    """Hands out claimed jobs with the monotonic instant at which their claim was sent."""

    def __init__(
        self, queue: JobQueue, settings: WorkerSettings, stopping: anyio.Event, observation: Observation
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._stopping = stopping
        self._observation = observation
        self._trouble = Backoff()
        self._empty = Backoff(timedelta(milliseconds=5), settings.poll_interval)

    async def take(self, limit: int) -> tuple[list[DequeueResult], float]:
        """Claim up to `limit` jobs; [] after a pause when there was none, or trouble."""
        sent = time.monotonic()
        claimed: list[DequeueResult] = []
        try:
            # A claim that is cancelled half-way may have happened: its jobs would wait for the end of their lease.
            with anyio.CancelScope(shield=True), anyio.fail_after(self._settings.lease.total_seconds()):
                claimed = await self._claim(limit)
        except (BackendError, TimeoutError) as error:
            self._observation.note(Event.CLAIM_FAILED, f"a claim failed: {error!r}", error=repr(error))
            await self._trouble.pause(self._stopping)
            return [], sent
        self._trouble.reset()
        if claimed:
            self._empty.reset()
        else:
            await self._wait()
        return claimed, sent

    async def _claim(self, limit: int) -> list[DequeueResult]:
        if limit > 1 and isinstance(self._queue, SupportsDequeueMany):
            return await self._queue.dequeue_many(limit, self._settings.serves)
        claimed = await self._queue.dequeue(self._settings.serves)
        return [] if claimed is None else [claimed]

    async def _wait(self) -> None:
        # wait_for_jobs does not know what we serve or which groups are full: the growing pause keeps a queue that has
        # work only for others from being claimed in a tight loop.
        pause = self._empty.draw()
        with anyio.move_on_after(pause):
            await self._stopping.wait()
        rest = self._settings.poll_interval.total_seconds() - pause
        if rest > 0 and not self._stopping.is_set() and isinstance(self._queue, SupportsWaiting):
            await self._wait_for_jobs(self._queue, rest)

    async def _wait_for_jobs(self, queue: SupportsWaiting, seconds: float) -> None:
        async with open_task_group() as tasks:

            async def stop_waiting() -> None:
                await self._stopping.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(stop_waiting)
            try:
                await queue.wait_for_jobs(timedelta(seconds=seconds))
            except BackendError as error:
                self._observation.note(Event.CLAIM_FAILED, f"waiting for jobs failed: {error!r}", error=repr(error))
                await self._trouble.pause(self._stopping)
            tasks.cancel_scope.cancel()
