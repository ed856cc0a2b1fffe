"""How jobs are stored, read back, and changed from one status to another."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from workflow_adapters.ids import new_id
from workflow_adapters.inputs.job_queue import DEFAULT_MAX_ATTEMPTS, EnqueueJobInput
from workflow_adapters.memory.rows import JobRow, copied
from workflow_adapters.payloads import read_payload
from workflow_adapters.records.job_queue import DequeueResult, JobRecord
from workflow_adapters.records.status import Status


def new_job(job: EnqueueJobInput, now: datetime) -> JobRow:
    return JobRow(
        id=new_id(),
        created_at=now,
        updated_at=now,
        workflow_run_id=job.workflow_run_id,
        stage_id=job.stage_id,
        status=Status.PENDING,
        priority=job.priority,
        payload=copied(job.stored_payload),
        max_attempts=DEFAULT_MAX_ATTEMPTS,
        next_poll_at=job.scheduled_for,
    )


def pending(job: JobRow, now: datetime) -> JobRow:
    """Given back: nobody's. started_at stays, because the next claim must be later."""
    return replace(job, status=Status.PENDING, worker_id=None, locked_at=None, updated_at=now)


def finished(job: JobRow, status: Status, now: datetime, error: str | None = None) -> JobRow:
    """At its end; an error replaces the last one."""
    return replace(job, status=status, completed_at=now, updated_at=now, last_error=error or job.last_error)


def is_due(job: JobRow, now: datetime) -> bool:
    return job.next_poll_at is None or job.next_poll_at <= now


def job_record(job: JobRow) -> JobRecord:
    read = read_payload(job.payload)
    return JobRecord(
        id=job.id,
        created_at=job.created_at,
        updated_at=job.updated_at,
        workflow_run_id=job.workflow_run_id,
        workflow_id=read.workflow_id,
        stage_id=job.stage_id,
        status=job.status,
        priority=job.priority,
        worker_id=job.worker_id,
        locked_at=job.locked_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        last_error=job.last_error,
        next_poll_at=job.next_poll_at,
        payload=copied(read.payload),
        definition_version=read.definition_version,
        group_key=read.group_key,
    )


def dequeue_result(job: JobRow, started_at: datetime) -> DequeueResult:
    read = read_payload(job.payload)
    return DequeueResult(
        job_id=job.id,
        workflow_run_id=job.workflow_run_id,
        workflow_id=read.workflow_id,
        stage_id=job.stage_id,
        priority=job.priority,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        payload=copied(read.payload),
        started_at=started_at,
        definition_version=read.definition_version,
        group_key=read.group_key,
    )
