"""Gives back the jobs of lost workers, and ends those that run for too long."""

from __future__ import annotations

from datetime import timedelta

import anyio

from workflow_adapters.inputs.job_queue import DEFAULT_STALE_AFTER
from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import JobQueue, SupportsAbsoluteLease
from workflow_adapters.runtime.loop import Loop
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.wording import counted

CALL_TIMEOUT = 60
"""Seconds that one sweep may take, so that a stalled query can not stop the loop unnoticed."""


class Reaper(Loop):
    """Both lease tiers of a queue.

    `stale_after` is the lease of the workers: without a heartbeat for that long a job is PENDING again, or FAILED when
    its attempts are spent (`fail_spent`). `absolute_timeout` fails a job that has run for that long, heartbeats or not.
    """

    def __init__(
        self,
        job_queue: JobQueue,
        *,
        stale_after: timedelta = DEFAULT_STALE_AFTER,
        absolute_timeout: timedelta | None = None,
        fail_spent: bool = True,
        every: timedelta = timedelta(seconds=30),
    ) -> None:
        super().__init__(self.reap, every, Observation("reaper"), Event.REAPER_FAILED)
        self._queue = job_queue
        self._stale_after = stale_after
        self._absolute_timeout = absolute_timeout
        self._fail_spent = fail_spent

    async def reap(self) -> bool:
        """One pass over both tiers."""
        with anyio.fail_after(CALL_TIMEOUT):
            released = await self._queue.release_stale_jobs(self._stale_after, self._fail_spent)
        if released:
            self.observation.note(
                Event.JOBS_RELEASED, f"released {counted(released, 'job')} of lost workers", jobs=released
            )
        if self._absolute_timeout is not None and supports(self._queue, SupportsAbsoluteLease):
            with anyio.fail_after(CALL_TIMEOUT):
                expired = await self._queue.expire_runaway_jobs(self._absolute_timeout)
            if expired:
                self.observation.note(Event.JOBS_EXPIRED, f"{counted(expired, 'job')} ran for too long", jobs=expired)
        return False
