"""Mistakes in the job queue."""

from typing import Final

from tests.conformance.suites.mutation import Mutant
from workflow_adapters import payloads
from workflow_adapters.memory import job_acks, job_claims, job_queue
from workflow_adapters.memory.job_acks import MemoryJobAcks
from workflow_adapters.memory.job_claims import Claim, GroupCap
from workflow_adapters.memory.job_queue import MemoryJobQueue
from workflow_adapters.memory.job_sweeps import MemoryJobSweeps
from workflow_adapters.memory.tables import JobsTable

JOB_QUEUE_MUTANTS: Final = (
    Mutant("JQ-ENQ-03", job_queue, "new_job", "priority=job.priority", "priority=5"),
    Mutant("JQ-ENQ-04", job_queue, "new_job", "next_poll_at=job.scheduled_for", "next_poll_at=None"),
    Mutant("JQ-ENQ-07", job_claims, "dequeue_result", "payload=copied(read.payload)", "payload=copied(job.payload)"),
    Mutant(
        "JQ-ENQ-13",
        MemoryJobQueue,
        "enqueue_parallel",
        "if stored is not None:",
        'if stored is not None and stored.status.value != "RUNNING":',
    ),
    Mutant(
        "JQ-ENQ-19",
        MemoryJobQueue,
        "enqueue_parallel",
        "last_inputs.pop(pair, None)",
        "job = last_inputs.pop(pair, job)",
    ),
    Mutant("JQ-DEQ-02", Claim, "_take", "attempt=job.attempt + 1", "attempt=max(job.attempt, 1)"),
    Mutant("JQ-DEQ-03", Claim, "_take", "started_at=started_at,\n", "started_at=job.created_at,\n"),
    Mutant("JQ-DEQ-09", Claim, "_take", "worker_id=self.worker_id", "worker_id=self.worker_id, last_error=None"),
    Mutant("JQ-ORDER-01", JobsTable, "__init__", "(-job.priority, job.created_at", "(job.priority, job.created_at"),
    Mutant("JQ-ORDER-02", JobsTable, "__init__", "(-job.priority, job.created_at", "(-job.priority, job.stage_id"),
    Mutant(
        "JQ-ORDER-08",
        JobsTable,
        "__init__",
        "(-job.priority, job.created_at",
        "(-job.priority, job.next_poll_at or job.created_at",
    ),
    Mutant("JQ-ORDER-06", job_claims, "is_due", "job.next_poll_at <= now", "job.next_poll_at < now"),
    Mutant("JQ-SERVES-02", Claim, "_may_take", "self.serves) and", "self.serves or None) and"),
    Mutant(
        "JQ-SERVES-05",
        job_claims,
        "is_served",
        "any(s.workflow_id == workflow_id and version in (None, s.version) for s in serves)",
        "workflow_id in {s.workflow_id for s in serves} and version in {None, *(s.version for s in serves)}",
    ),
    Mutant("JQ-DEAD-02", Claim, "_may_take", "len(self.serves) > 0", "False"),
    Mutant("JQ-DEAD-03", Claim, "_may_take", "len(self.serves) > 0", "True"),
    Mutant("JQ-FENCE-04", Claim, "_take", "max(self.now, later(job.started_at, MILLISECOND))", "self.now"),
    Mutant(
        "JQ-FENCE-07",
        Claim,
        "_take",
        "max(self.now, later(job.started_at, MILLISECOND))",
        "later(job.started_at, MILLISECOND)",
    ),
    Mutant("JQ-FENCE-10", job_acks, "pending", "locked_at=None", "locked_at=None, started_at=None"),
    Mutant("JQ-ACK-12", job_acks, "_holds", "and job.status is Status.RUNNING", ""),
    Mutant("JQ-ACK-13", job_acks, "_holds", "and job.started_at == fence.started_at", ""),
    Mutant("JQ-ACK-14", job_acks, "_holds", "and job.attempt == fence.attempt", ""),
    Mutant("JQ-ACK-54", job_acks, "pending", "worker_id=None, ", ""),
    Mutant("JQ-FAIL-04", MemoryJobAcks, "fail", "delay_ms(job.attempt)", "delay_ms(1)"),
    Mutant("JQ-FAIL-06", MemoryJobAcks, "fail", "job.attempt >= job.max_attempts", "job.attempt > job.max_attempts"),
    Mutant(
        "JQ-FAIL-07", MemoryJobAcks, "fail", "job.attempt >= job.max_attempts", "job.attempt + 1 >= job.max_attempts"
    ),
    Mutant("JQ-DEFER-02", MemoryJobAcks, "defer", "max(0, job.attempt - 1)", "job.attempt"),
    Mutant("JQ-DEFER-03", MemoryJobAcks, "defer", "max(0, job.attempt - 1)", "job.attempt - 1"),
    Mutant(
        "JQ-STALE-03",
        MemoryJobSweeps,
        "release_stale_jobs",
        "last_error=error))",
        "last_error=error, attempt=job.attempt - 1))",
    ),
    Mutant(
        "JQ-STALE-07",
        MemoryJobSweeps,
        "release_stale_jobs",
        "tables.jobs.by_status[Status.RUNNING]",
        "list(tables.jobs)",
    ),
    Mutant(
        "JQ-STALE-11",
        MemoryJobSweeps,
        "release_stale_jobs",
        "fail_spent and job.attempt >= job.max_attempts",
        "fail_spent",
    ),
    Mutant("JQ-STALE-12", MemoryJobSweeps, "release_stale_jobs", "fail_spent and", ""),
    Mutant(
        "JQ-CAP-04",
        MemoryJobSweeps,
        "expire_runaway_jobs",
        "job.started_at < cutoff",
        "(job.locked_at or now) < cutoff",
    ),
    Mutant("JQ-BEAT-03", MemoryJobAcks, "touch_job", "and job.status is Status.RUNNING", ""),
    Mutant("JQ-BEAT-07", MemoryJobAcks, "_acknowledge_many", "_holds(job, fence)", "job.status is Status.RUNNING"),
    Mutant(
        "JQ-CANCEL-03",
        MemoryJobSweeps,
        "cancel_by_run",
        "(Status.PENDING, Status.SUSPENDED)",
        "(Status.PENDING, Status.SUSPENDED, Status.RUNNING)",
    ),
    Mutant(
        "JQ-DELETE-01",
        MemoryJobSweeps,
        "delete_by_run_and_stages",
        "in wanted]",
        'in wanted and job.status != "RUNNING"]',
    ),
    Mutant(
        "JQ-FAIR-08",
        GroupCap,
        "__init__",
        "tables.jobs.by_status.iterate(Status.RUNNING)",
        "[job for job in tables.jobs if job.started_at is not None]",
    ),
    Mutant("JQ-FAIR-14", payloads, "_scalar_text", "dumps(value)", "str(value)"),
)
