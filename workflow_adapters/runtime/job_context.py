"""What a handler is given."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio

from workflow_adapters.errors import ConfigurationError, UsageError
from workflow_adapters.ports.adapters import Adapters, TransactionAdapters
from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import JobQueue, SupportsHeartbeat
from workflow_adapters.records.job_queue import DequeueResult, JobAckFence
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.runtime.leases import HeldLeases, Lease
from workflow_adapters.runtime.outcomes import LeaseLostError


class JobContext:
    """One attempt at one job."""

    def __init__(self, queue: JobQueue, adapters: Adapters | None, leases: HeldLeases, lease: Lease) -> None:
        self._queue = queue
        self._adapters = adapters
        self._leases = leases
        self._lease = lease

    @property
    def job(self) -> DequeueResult:
        return self._lease.job

    @property
    def adapters(self) -> Adapters:
        """The bundle that the worker was given."""
        if self._adapters is None:
            raise ConfigurationError("ctx.adapters needs the bundle: Worker(..., adapters=adapters)")
        return self._adapters

    @property
    def fence(self) -> JobAckFence:
        return self._lease.job.fence

    @property
    def lost(self) -> anyio.Event:
        """Set when the lease is lost; the handler is cancelled at the same time."""
        return self._lease.lost

    @property
    def time_left(self) -> timedelta:
        """How long the lease lasts unless a heartbeat renews it. The worker sends those by itself."""
        return timedelta(seconds=max(self._lease.seconds_left(), 0))

    async def heartbeat(self) -> bool:
        """Renew the lease now; False when it is lost. Only useful just before something slow that can not be undone."""
        sent = time.monotonic()
        if supports(self._queue, SupportsHeartbeat):
            [answer] = await self._queue.heartbeat([self._lease.claim])
            if answer is not JobAckOutcome.ACKNOWLEDGED:
                self._leases.mark_superseded(self._lease)
                self._leases.end_lost()
                return False
        else:
            await self._queue.touch_job(self.job.job_id)
        self._leases.renew(self._lease, sent)
        return self._lease.lost_reason is None

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[TransactionAdapters]:
        """The handler's own writes and the job's completion, together or not at all.

        At the end of the block the job is completed with its fence in the same transaction. If the lease is lost by
        then, everything is rolled back and LeaseLostError raised. Nothing may follow it in the handler that must not be
        repeated. After a commit, or one whose outcome is unknown, a second block is a UsageError. Without `adapters` at
        the worker: ConfigurationError.
        """
        if self._adapters is None:
            raise ConfigurationError("ctx.transaction() needs the bundle: Worker(..., adapters=adapters)")
        lease = self._lease
        if lease.completed or lease.outcome_unknown:
            raise UsageError("ctx.transaction() completes the job, so it can be used once")
        acknowledged = False
        try:
            async with self._adapters.transaction() as tx:
                yield tx
                lease.acknowledging = True
                outcome = await tx.job_queue.complete(*lease.claim)
                if outcome is not JobAckOutcome.ACKNOWLEDGED:
                    self._leases.mark_superseded(lease)
                    raise LeaseLostError(self.job.job_id)
                acknowledged = True
        except BaseException:
            # From here on only the commit was left: a lost connection, or a cancel, does not tell what became of it.
            lease.outcome_unknown = acknowledged
            # What was rolled back leaves the job RUNNING, and its lease in need of heartbeats.
            lease.acknowledging = acknowledged
            raise
        lease.completed = True
