"""The leases that a worker holds, and what ends them.

A lease is judged on the monotonic clock of this process, from the instant before its claim (or last answered heartbeat)
was sent: so it counts as lost here before the database can hand the job to somebody else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum

import anyio

from workflow_adapters.records.job_queue import DequeueResult, JobAckFence
from workflow_adapters.runtime.observation import Event, Observation, describe

SAFETY = 0.1
"""Share of a lease by which it counts as lost before it ends."""


class LostReason(StrEnum):
    """Why a lease is no longer held."""

    SUPERSEDED = "another worker holds the job"
    UNANSWERED = "no heartbeat was answered before the lease ended"


class Lease:
    """One held claim. `lost` is set, and the handler cancelled, when the job may be another's.

    While it is `acknowledging`, its job may be RUNNING no longer: a heartbeat tells nothing then.
    """

    def __init__(self, job: DequeueResult, expires: float) -> None:
        self.job = job
        self.expires = expires
        self.lost = anyio.Event()
        self.lost_reason: LostReason | None = None
        self.acknowledging = False
        self.completed = False
        """A transaction of the handler's has committed the completion: nothing is left to acknowledge."""
        self.outcome_unknown = False
        """That commit was interrupted: the row tells whether it happened."""
        self.scope: anyio.CancelScope | None = None

    @property
    def claim(self) -> tuple[str, JobAckFence]:
        return self.job.job_id, self.job.fence

    def seconds_left(self) -> float:
        return self.expires - time.monotonic()


class HeldLeases:
    """All leases of one worker. Renewing and listing are safe from the heartbeat thread."""

    def __init__(
        self, lease: timedelta, observation: Observation, on_superseded: Callable[[DequeueResult], None] | None
    ) -> None:
        self.span = lease.total_seconds() * (1 - SAFETY)
        self._observation = observation
        self._on_superseded = on_superseded
        self._lock = threading.Lock()
        self._held: dict[str, Lease] = {}
        self._superseded: set[str] = set()

    def hold(self, job: DequeueResult, sent: float) -> Lease:
        """Start to hold a claim that was sent at the monotonic instant `sent`."""
        lease = Lease(job, sent + self.span)
        with self._lock:
            self._held[self._key(lease)] = lease
        return lease

    def let_go(self, lease: Lease) -> None:
        with self._lock:
            self._held.pop(self._key(lease), None)

    def held(self) -> list[Lease]:
        """Those to send heartbeats for."""
        with self._lock:
            return [lease for lease in self._held.values() if lease.lost_reason is None and not lease.acknowledging]

    def renew(self, lease: Lease, sent: float) -> None:
        with self._lock:
            lease.expires = max(lease.expires, sent + self.span)

    def mark_superseded(self, lease: Lease) -> None:
        """Note the loss; `end_lost`, in the worker's loop, acts on it."""
        with self._lock:
            if lease.lost_reason is None:
                lease.lost_reason = LostReason.SUPERSEDED

    def end_lost(self) -> None:
        """Cancel the handlers of leases that are lost. Called in the worker's loop only."""
        now = time.monotonic()
        with self._lock:
            leases = list(self._held.values())
            for lease in leases:
                if lease.lost_reason is None and lease.expires <= now:
                    lease.lost_reason = LostReason.UNANSWERED
        for lease in leases:
            if lease.lost_reason is not None and not lease.lost.is_set():
                self._end(lease, lease.lost_reason)

    def _end(self, lease: Lease, reason: LostReason) -> None:
        lease.lost.set()
        job = lease.job
        self._observation.note(
            Event.LEASE_LOST,
            f"the lease on job {job.job_id} (attempt {job.attempt}) is lost: {reason}; its handler is cancelled",
            job_id=job.job_id,
            workflow_run_id=job.workflow_run_id,
            stage_id=job.stage_id,
            attempt=job.attempt,
            reason=reason.name.lower(),
        )
        if lease.scope is not None:
            lease.scope.cancel()
        self.tell_superseded(job)

    def tell_superseded(self, job: DequeueResult) -> None:
        """Call the host's callback, once for each claim; an error in it harms nothing else."""
        key = f"{job.job_id} {job.started_at.isoformat()}"
        if self._on_superseded is None or key in self._superseded:
            return
        self._superseded.add(key)
        try:
            self._on_superseded(job)
        except Exception as error:  # noqa: BLE001  # the host's callback may raise anything
            told = describe(error)
            self._observation.note(Event.CALLBACK_FAILED, f"on_superseded raised {told}", job_id=job.job_id, error=told)

    @staticmethod
    def _key(lease: Lease) -> str:
        return f"{lease.job.job_id} {lease.job.started_at.isoformat()}"
