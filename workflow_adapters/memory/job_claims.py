"""Which job a claim takes, and what it makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from workflow_adapters.inputs.job_queue import JobQueueFairness
from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.memory.adapter import MILLISECOND, later
from workflow_adapters.memory.job_rows import dequeue_result, finished, is_due
from workflow_adapters.memory.rows import JobRow
from workflow_adapters.memory.tables import Tables
from workflow_adapters.payloads import dead_reason, group_of, is_served, read_payload
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import Status


class GroupCap:
    """Which fairness groups are full. Without fairness none ever is."""

    def __init__(self, tables: Tables, fairness: JobQueueFairness | None) -> None:
        self._fairness = fairness
        self._running: Counter[str] = Counter()
        if fairness is not None:
            running = tables.jobs.by_status.iterate(Status.RUNNING)
            self._running.update(group_of(job.payload, fairness.path) for job in running)

    def is_full(self, job: JobRow) -> bool:
        if self._fairness is None:
            return False
        return self._running[group_of(job.payload, self._fairness.path)] >= self._fairness.max_concurrent_per_group

    def take(self, job: JobRow) -> None:
        if self._fairness is not None:
            self._running[group_of(job.payload, self._fairness.path)] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim: who makes it, when, what it serves (None: anything)."""

    worker_id: str
    now: datetime
    serves: Sequence[ServedDefinition] | None
    cap: GroupCap

    def take_next(self, tables: Tables) -> DequeueResult | None:
        """Take the due job of the highest priority, then the oldest; dead ones on the way are failed."""
        while (job := self._next(tables)) is not None:
            reason = dead_reason(job.payload)
            if reason is None:
                return self._take(tables, job)
            tables.jobs.put(finished(job, Status.FAILED, self.now, reason))
        return None

    def _next(self, tables: Tables) -> JobRow | None:
        waiting = tables.jobs.by_status.iterate(Status.PENDING)
        return next((job for job in waiting if is_due(job, self.now) and self._may_take(job)), None)

    def _may_take(self, job: JobRow) -> bool:
        if dead_reason(job.payload) is not None:
            # Every claimer that serves anything serves a dead job, so that it does not wait for ever.
            return self.serves is None or len(self.serves) > 0
        read = read_payload(job.payload)
        return is_served(read.workflow_id, read.definition_version, self.serves) and not self.cap.is_full(job)

    def _take(self, tables: Tables, job: JobRow) -> DequeueResult:
        # Later than the job's last claim, even within one millisecond: the pair (started_at, attempt) names one claim.
        started_at = self.now if job.started_at is None else max(self.now, later(job.started_at, MILLISECOND))
        taken = replace(
            job,
            status=Status.RUNNING,
            attempt=job.attempt + 1,
            worker_id=self.worker_id,
            locked_at=started_at,
            started_at=started_at,
            updated_at=self.now,
        )
        self.cap.take(taken)
        tables.jobs.put(taken)
        return dequeue_result(taken, started_at)
