"""Rows of workflow_stages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonValue
from workflow_adapters.records.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStageRecord:
    """One stage of a run. `duration` and `poll_interval` are in milliseconds."""

    id: str
    created_at: datetime
    updated_at: datetime
    version: int
    workflow_run_id: str
    stage_id: str
    stage_name: str
    stage_number: int
    execution_group: int
    attempt: int
    status: Status
    started_at: datetime | None
    completed_at: datetime | None
    duration: int | None
    input_data: JsonValue
    output_data: JsonValue
    config: JsonValue
    suspended_state: JsonValue
    resume_data: JsonValue
    next_poll_at: datetime | None
    poll_interval: int | None
    max_wait_until: datetime | None
    metrics: JsonValue
    embedding_info: JsonValue
    error_message: str | None
