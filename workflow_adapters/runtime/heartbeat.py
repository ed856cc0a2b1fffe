"""Heartbeats of all held leases together, well inside the lease and independent of how long handlers run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta

import anyio

from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import JobQueue, SupportsHeartbeat
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.runtime.leases import HeldLeases, Lease
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.task_groups import open_task_group
from workflow_adapters.runtime.trouble import TROUBLE
from workflow_adapters.wording import counted

QueueFactory = Callable[[], AbstractAsyncContextManager[JobQueue]]
"""Opens the same queue a second time, for the heartbeat thread's own event loop."""


async def beat(queue: JobQueue, leases: HeldLeases, timeout: float, observation: Observation) -> None:
    """Refresh every held lease once; one that is no longer ours is marked superseded.

    A failed or unanswered heartbeat renews nothing: if that goes on, the leases count as lost before they end.
    """
    held = leases.held()
    if not held:
        return
    sent = time.monotonic()
    try:
        with anyio.fail_after(timeout):
            await _refresh(queue, leases, held, sent)
    except TROUBLE as error:
        observation.note(
            Event.HEARTBEAT_FAILED,
            f"a heartbeat of {counted(len(held), 'lease')} failed: {error!r}",
            error=repr(error),
            leases=len(held),
        )


async def _refresh(queue: JobQueue, leases: HeldLeases, held: list[Lease], sent: float) -> None:
    if not supports(queue, SupportsHeartbeat):
        # touch_job is unfenced: it keeps the lease alive, but the loss shows only at the acknowledgement.
        for lease in held:
            await queue.touch_job(lease.job.job_id)
            leases.renew(lease, sent)
        return
    answers = await queue.heartbeat([lease.claim for lease in held])
    for lease, answer in zip(held, answers, strict=True):
        if answer is JobAckOutcome.ACKNOWLEDGED:
            leases.renew(lease, sent)
        elif not lease.acknowledging:
            leases.mark_superseded(lease)


class Heartbeat:
    """Beats in the worker's loop every `interval`, watches the leases, and notices a blocked loop."""

    def __init__(self, queue: JobQueue, leases: HeldLeases, interval: timedelta, observation: Observation) -> None:
        self._queue = queue
        self._leases = leases
        self._interval = interval.total_seconds()
        self._observation = observation

    async def run(self, *, beats: bool = True) -> None:
        """Run until cancelled. With `beats` False a thread does the beating and this only watches."""
        async with open_task_group() as tasks:
            if beats:
                tasks.start_soon(self._beat)
            # Beside the beats: while one of them waits for its answer, leases end as well.
            await self._watch()

    async def _beat(self) -> None:
        sent = time.monotonic()
        while True:
            await anyio.sleep(max(sent + self._interval - time.monotonic(), 0))
            sent = time.monotonic()
            await beat(self._queue, self._leases, self._interval, self._observation)
            self._leases.end_lost()

    async def _watch(self) -> None:
        step = self._interval / 4
        while True:
            before = time.monotonic()
            await anyio.sleep(step)
            late = time.monotonic() - before - step
            if late > self._interval:
                self._observation.note(
                    Event.LOOP_BLOCKED,
                    f"the event loop was blocked for {late:.1f} s; move blocking code to a thread",
                    seconds=late,
                )
            self._leases.end_lost()


class HeartbeatThread:
    """Beats from a thread with its own event loop, so that a handler that blocks the worker's loop keeps its lease."""

    def __init__(
        self, open_queue: QueueFactory, leases: HeldLeases, interval: timedelta, observation: Observation
    ) -> None:
        self._open_queue = open_queue
        self._leases = leases
        self._interval = interval.total_seconds()
        self._observation = observation
        self._stop = threading.Event()
        self._wake: Callable[[], object] = self._stop.set
        self._thread = threading.Thread(target=self._main, name="workflow-adapters-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        with suppress(RuntimeError):  # its loop has just ended
            self._wake()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _main(self) -> None:
        while not self._stop.is_set():
            try:
                anyio.run(self._beat_until_stopped)
            except Exception as error:  # noqa: BLE001  # whatever it was, the leases need their heartbeats
                self._observation.note(
                    Event.HEARTBEAT_FAILED, f"the heartbeat thread starts again after {error!r}", error=repr(error)
                )
                self._stop.wait(self._interval)

    async def _beat_until_stopped(self) -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        self._wake = lambda: loop.call_soon_threadsafe(stopped.set)
        async with self._open_queue() as queue:
            while not self._stop.is_set():
                await beat(queue, self._leases, self._interval, self._observation)
                with anyio.move_on_after(self._interval):
                    await stopped.wait()
