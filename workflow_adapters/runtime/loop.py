"""The frame of a background loop: passes at an interval, trouble never ends it, an orderly stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio
from anyio.abc import TaskStatus

from workflow_adapters.runtime.backoff import Backoff
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.trouble import TROUBLE

Pass = Callable[[], Awaitable[bool]]


class Loop:
    """Calls a pass again and again. A pass answers True when there may be more to do at once."""

    def __init__(self, one_pass: Pass, every: timedelta, observation: Observation, failed: Event) -> None:
        self._pass = one_pass
        self._every = every.total_seconds()
        self.observation = observation
        self._failed = failed
        self._stopping: anyio.Event | None = None
        self._stop_requested = False

    def stop(self) -> None:
        """End `run` after the pass that is under way."""
        self._stop_requested = True
        if self._stopping is not None:
            self._stopping.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until `stop` is called or the task is cancelled. Trouble (`TROUBLE`) never ends it."""
        self._stopping = stopping = anyio.Event()
        if self._stop_requested:
            stopping.set()
        trouble = Backoff()
        task_status.started()
        while not stopping.is_set():
            try:
                more = await self._pass()
            except TROUBLE as error:
                self.observation.note(self._failed, f"a pass failed: {error!r}", error=repr(error))
                await trouble.pause(stopping)
                continue
            trouble.reset()
            if not more:
                with anyio.move_on_after(self._every):
                    await stopping.wait()
