"""A worker: claims jobs, runs a handler on each under a lease that it keeps alive, and acknowledges with the fence."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Unpack

import anyio
from anyio.abc import TaskGroup, TaskStatus

from workflow_adapters.ids import new_id
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import JobQueue, SupportsWorkerAdoption
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.runtime.attempt import Attempts
from workflow_adapters.runtime.claims import Claims
from workflow_adapters.runtime.heartbeat import Heartbeat, HeartbeatThread
from workflow_adapters.runtime.leases import HeldLeases, Lease
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.outcomes import Handler
from workflow_adapters.runtime.settings import WorkerOptions, WorkerSettings
from workflow_adapters.runtime.task_groups import open_task_group
from workflow_adapters.wording import counted

CANCELLED = float("-inf")
"""What anyio gives as the deadline of a cancelled scope."""


class Worker:
    """Runs `handler` on the jobs of a queue.

    `adapters` is needed for ``ctx.transaction()`` and ``ctx.adapters``. The other options are those of
    `WorkerSettings`. Run it with ``await worker.run()`` in a task of yours; `stop` ends it in an orderly way,
    cancelling the task ends it as soon as the handlers have heard of it.

    Claims are stamped with `worker_id` if the queue was given none. A queue has one id: workers that share a bundle
    share the id of the one that began last.
    """

    def __init__(
        self,
        job_queue: JobQueue,
        handler: Handler,
        *,
        adapters: Adapters | None = None,
        **settings: Unpack[WorkerOptions],
    ) -> None:
        self._queue = job_queue
        self._settings = WorkerSettings(**settings)
        self.observation = Observation("worker")
        self._leases = HeldLeases(self._settings.lease, self.observation, self._settings.on_superseded)
        self._attempts = Attempts(job_queue, handler, adapters, self._settings, self._leases, self.observation)
        self._running: set[Lease] = set()
        self._stopping: anyio.Event | None = None
        self._jobs_scope = anyio.CancelScope()
        self._claims: Claims | None = None
        self._drain_until = math.inf
        self._stop_requested = False
        self._changed = anyio.Event()

    @property
    def running(self) -> int:
        """How many handlers run now."""
        return len(self._running)

    @property
    def lease(self) -> timedelta:
        """How long a claim lives without a heartbeat."""
        return self._settings.lease

    @property
    def working(self) -> bool:
        """Whether `run` is under way and claims."""
        return self._stopping is not None and not self._stopping.is_set()

    def stop(self) -> None:
        """Stop claiming; `run` returns when the handlers have ended.

        They have `drain` to do so, what is cancelled then has `grace`; with a claim and acknowledgements that get no
        answer, `run` lasts for `drain` and five times `grace` at the most. Called in the worker's loop.
        """
        self._stop_requested = True
        if self._stopping is not None and not self._stopping.is_set():
            self._stopping.set()
            self._drain_until = anyio.current_time() + self._settings.drain.total_seconds()
            if self._claims is not None:
                self._claims.hurry()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until `stop` is called or the task is cancelled. Queue trouble never ends it."""
        self._stopping = stopping = anyio.Event()
        if self._stop_requested:
            stopping.set()
        if supports(self._queue, SupportsWorkerAdoption):
            self._queue.adopt_worker_id(self._settings.worker_id or f"worker-{new_id()}")
        self.observation.note(Event.WORKER_STARTED, "started")
        thread = self._start_thread()
        try:
            async with open_task_group() as tasks:
                heartbeat = Heartbeat(self._queue, self._leases, self._settings.beat_interval, self.observation)
                tasks.start_soon(lambda: heartbeat.run(beats=thread is None))
                task_status.started()
                await self._work(stopping)
                tasks.cancel_scope.cancel()
        finally:
            stopping.set()
            if thread is not None:
                await self._end_thread(thread)
            self.observation.note(Event.WORKER_STOPPED, "stopped")

    async def _work(self, stopping: anyio.Event) -> None:
        draining = anyio.Event()
        async with open_task_group() as jobs:
            self._jobs_scope = jobs.cancel_scope
            try:
                await self._claim(jobs, stopping, draining)
                await self._drain(draining)
            finally:
                draining.set()

    async def _claim(self, jobs: TaskGroup, stopping: anyio.Event, draining: anyio.Event) -> None:
        claims = Claims(self._queue, self._settings, stopping, self.observation, self._give_back)
        self._claims = claims
        while not stopping.is_set():
            free = self._settings.concurrency - len(self._running)
            if free <= 0:
                await self._wait_for_room(stopping)
                continue
            claimed, sent = await claims.take(free)
            leases = [self._leases.hold(job, sent) for job in claimed]
            if stopping.is_set() or anyio.current_effective_deadline() == CANCELLED:
                await self._return(leases)
                continue
            for lease in leases:
                self._running.add(lease)
                jobs.start_soon(self._attempt, lease, draining)

    async def _attempt(self, lease: Lease, draining: anyio.Event) -> None:
        try:
            await self._attempts.run(lease, draining)
        finally:
            self._leases.let_go(lease)
            self._running.discard(lease)
            changed, self._changed = self._changed, anyio.Event()
            changed.set()

    async def _wait_for_room(self, stopping: anyio.Event) -> None:
        async with open_task_group() as tasks:

            async def stop_waiting() -> None:
                await stopping.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(stop_waiting)
            while len(self._running) >= self._settings.concurrency:
                await self._changed.wait()
            tasks.cancel_scope.cancel()

    async def _give_back(self, jobs: list[DequeueResult], sent: float) -> None:
        await self._return([self._leases.hold(job, sent) for job in jobs])

    async def _return(self, leases: list[Lease]) -> None:
        """Give claims back that no handler has seen, without spending their attempts."""
        with anyio.move_on_after(self._settings.grace.total_seconds(), shield=True):
            for lease in leases:
                await self._attempts.decline(lease, "the worker stopped before it began", timedelta(0))
                self.observation.note(
                    Event.CLAIM_RETURNED, f"job {lease.job.job_id} was given back", job_id=lease.job.job_id
                )
        for lease in leases:
            self._leases.let_go(lease)

    async def _drain(self, draining: anyio.Event) -> None:
        self.observation.note(
            Event.WORKER_STOPPING,
            f"stops claiming; {counted(len(self._running), 'job')} running",
            running=len(self._running),
        )
        # The time that a claim in flight took, and its return, is a part of it.
        with anyio.CancelScope(deadline=self._drain_until):
            await self._until_idle()
        draining.set()
        for lease in self._running:
            if lease.scope is not None:
                lease.scope.cancel()
        # Each attempt bounds its handler's end by the grace itself; what is left are acknowledgements.
        with anyio.move_on_after(2 * self._settings.grace.total_seconds()):
            await self._until_idle()
        self._jobs_scope.cancel()

    async def _until_idle(self) -> None:
        while self._running:
            await self._changed.wait()

    def _start_thread(self) -> HeartbeatThread | None:
        open_queue = self._settings.heartbeat_thread
        if open_queue is None:
            return None
        thread = HeartbeatThread(open_queue, self._leases, self._settings.beat_interval, self.observation)
        thread.start()
        return thread

    async def _end_thread(self, thread: HeartbeatThread) -> None:
        thread.stop()
        grace = self._settings.grace.total_seconds()
        with anyio.move_on_after(grace, shield=True):
            await anyio.to_thread.run_sync(thread.join, grace, abandon_on_cancel=True)
