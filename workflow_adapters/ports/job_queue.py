"""Contract of the JobQueue port."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol, cast, runtime_checkable

from workflow_adapters.arguments import checked
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.job_queue import DEFAULT_STALE_AFTER, EnqueueJobInput
from workflow_adapters.inputs.runs import Serves, serves
from workflow_adapters.records.job_queue import DequeueResult, JobAckFence, JobRecord
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.validation import (
    boolean,
    instance,
    instant,
    int32,
    key,
    non_negative,
    non_negative_span,
    optional,
    parts,
    sequence,
    span,
    text,
)

_job_fence = parts(JobAckFence, started_at=instant, attempt=int32)
_fence = optional(_job_fence)


def _claim(field: str, value: object) -> tuple[str, JobAckFence]:
    if not isinstance(value, tuple) or len(cast("tuple[object, ...]", value)) != _PAIR:
        raise InvalidValueError(field, field, "must be a (job id, fence) pair")
    job_id, fence = cast("tuple[object, object]", value)
    try:
        return key(field, job_id), _job_fence(f"{field}[1]", fence)
    except InvalidValueError as error:
        raise InvalidValueError(field, error.path, error.why) from error.__cause__


_PAIR = 2
_claims = sequence(_claim)


@runtime_checkable
class JobQueue(Protocol):
    """Jobs, one per (workflow_run_id, stage_id), handed out under leases and acknowledged with fences.

    Stamps and comparisons with now use one clock: the database's on Postgres, the adapter's elsewhere.
    """

    @checked(jobs=sequence(instance(EnqueueJobInput)))
    async def enqueue_parallel(self, jobs: Sequence[EnqueueJobInput]) -> list[str]:
        """Enqueue jobs, all or nothing, and return one id per input, in order.

        A stored job of the same (run, stage) pair, whatever its status, is replaced by a fresh PENDING one under a new
        id: attempt 0, nothing left of worker, lock, error, started_at or completed_at, next_poll_at = scheduled_for.
        A pair repeated inside the call: its last input wins and all its positions get the surviving id. Concurrent
        calls for the same pairs leave one row per pair and never deadlock.
        """
        ...

    @checked(run_id=key, stage_ids=sequence(key))
    async def delete_by_run_and_stages(self, run_id: str, stage_ids: Sequence[str]) -> int:
        """Delete the jobs of these stages, whatever their status, and return how many."""
        ...

    @checked(serves=serves)
    async def dequeue(self, serves: Serves = None) -> DequeueResult | None:
        """Claim the due PENDING job of the highest priority, then the oldest, then in insertion order, or None.

        Due: next_poll_at null or <= now. The job becomes RUNNING with attempt + 1, this worker's id and
        locked_at = started_at = now; started_at is strictly later than that of the job's previous claim. `serves` as
        for claim_next_pending_run, against the payload. A dead job (payload null, no object, or without a string
        `_workflowId`) is failed with the reason and the next one taken; every non-empty `serves` serves it.
        Groups at their fairness cap are left out. None only if at some instant during the call nothing was claimable;
        races lost beyond a bound: BackendBusyError.
        """
        ...

    @checked(job_id=key, fence=_fence)
    async def complete(self, job_id: str, fence: JobAckFence | None = None) -> JobAckOutcome:
        """End the job COMPLETED.

        For all four acknowledgements: with a fence, one atomic statement conditioned on the row still being RUNNING
        with that started_at and attempt; otherwise nothing is written and SUPERSEDED returned (a deleted job too).
        Without a fence: unconditional; NotFoundError for an unknown job.
        """
        ...

    @checked(job_id=key, next_poll_at=instant, fence=_fence)
    async def suspend(self, job_id: str, next_poll_at: datetime, fence: JobAckFence | None = None) -> JobAckOutcome:
        """SUSPENDED until somebody enqueues the pair again; worker and lock cleared. Never dequeued."""
        ...

    @checked(job_id=key, error=text, should_retry=boolean, fence=_fence)
    async def fail(
        self, job_id: str, error: str, should_retry: bool = False, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        """Record the error; with should_retry and attempts left PENDING again after the backoff, else FAILED."""
        ...

    @checked(run_id=key)
    async def cancel_by_run(self, run_id: str) -> int:
        """PENDING and SUSPENDED jobs of the run become CANCELLED with completed_at; returns how many. RUNNING stay."""
        ...

    @checked(job_id=key)
    async def touch_job(self, job_id: str) -> None:
        """Refresh locked_at of a RUNNING job; otherwise a silent no-op. Deliberately unfenced."""
        ...

    @checked(stale_after=span, fail_spent=boolean)
    async def release_stale_jobs(self, stale_after: timedelta = DEFAULT_STALE_AFTER, fail_spent: bool = False) -> int:
        """Give back RUNNING jobs whose locked_at is older than `stale_after`; returns how many rows it changed.

        They become PENDING with worker and lock cleared, the attempt kept, last_error beginning with
        LEASE_HEARTBEAT_LOST. With fail_spent a job without attempts left is FAILED instead. One statement that neither
        waits behind nor undoes an acknowledgement in flight. A negative span makes every lease old.
        """
        ...

    @checked(run_id=key)
    async def get_jobs_by_workflow_run(self, run_id: str) -> list[JobRecord]:
        """Jobs of the run, by created_at, then id."""
        ...


@runtime_checkable
class SupportsDefer(Protocol):
    """Declining a job without spending an attempt."""

    @checked(job_id=key, next_poll_at=instant, reason=text, fence=_fence)
    async def defer(
        self, job_id: str, next_poll_at: datetime, reason: str, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        """PENDING again, due at next_poll_at, attempt - 1 (never below 0), worker and lock cleared.

        last_error becomes the reason. Fenced like the other acknowledgements. Any number of times.
        """
        ...


@runtime_checkable
class SupportsAbsoluteLease(Protocol):
    """The second lease tier: a limit that no heartbeat extends."""

    @checked(absolute_timeout=span)
    async def expire_runaway_jobs(self, absolute_timeout: timedelta) -> int:
        """RUNNING jobs whose started_at is older become FAILED for good; returns how many.

        completed_at is set and last_error begins with LEASE_ABSOLUTE_CAP. One statement that skips locked rows.
        """
        ...


@runtime_checkable
class SupportsWorkerAdoption(Protocol):
    """Stamping claims with the host's worker id."""

    @checked(worker_id=key)
    def adopt_worker_id(self, worker_id: str) -> str:
        """Take the host's id unless one was configured; return the id that claims will carry. Synchronous."""
        ...


@runtime_checkable
class SupportsFairness(Protocol):
    """A cap on the RUNNING jobs of each group."""

    @property
    def fairness_group_by(self) -> str | None:
        """The dotted payload path of the group; None when fairness is off."""
        ...


@runtime_checkable
class SupportsWaiting(Protocol):
    """Waiting for work without polling the claim."""

    @checked(timeout=non_negative_span)
    async def wait_for_jobs(self, timeout: timedelta) -> bool:
        """True as soon as a job may be due, False at the timeout. A hint: the claim alone tells the truth."""
        ...


@runtime_checkable
class SupportsDequeueMany(Protocol):
    """Claims in batches."""

    @checked(limit=non_negative, serves=serves)
    async def dequeue_many(self, limit: int, serves: Serves = None) -> list[DequeueResult]:
        """Claim at most `limit` jobs as dequeue does, in claim order; [] when there is none."""
        ...


@runtime_checkable
class SupportsCompleteMany(Protocol):
    """Fenced completions in one statement."""

    @checked(claims=_claims)
    async def complete_many(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        """Complete (job id, fence) pairs, each fenced on its own; answers in order."""
        ...


@runtime_checkable
class SupportsHeartbeat(Protocol):
    """Fenced heartbeats in one statement."""

    @checked(claims=_claims)
    async def heartbeat(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        """Refresh locked_at of exactly the claims that still hold; SUPERSEDED for the others. Answers in order."""
        ...
