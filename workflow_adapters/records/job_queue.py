"""Rows of job_queue, and what a claim hands out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonObject
from workflow_adapters.records.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job as stored. `workflow_id` is "" for a dead job, whose payload does not name its workflow."""

    id: str
    created_at: datetime
    updated_at: datetime
    workflow_run_id: str
    workflow_id: str
    stage_id: str
    status: Status
    priority: int
    worker_id: str | None
    locked_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    attempt: int
    max_attempts: int
    last_error: str | None
    next_poll_at: datetime | None
    payload: JsonObject
    definition_version: str | None
    group_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAckFence:
    """Names one claim of one job for ever."""

    started_at: datetime
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DequeueResult:
    """A claimed job. Acknowledge it with its `fence`."""

    job_id: str
    workflow_run_id: str
    workflow_id: str
    stage_id: str
    priority: int
    attempt: int
    max_attempts: int
    payload: JsonObject
    started_at: datetime
    definition_version: str | None
    group_key: str | None

    @property
    def fence(self) -> JobAckFence:
        return JobAckFence(started_at=self.started_at, attempt=self.attempt)
