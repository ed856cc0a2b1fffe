"""Rows of workflow_runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonValue
from workflow_adapters.records.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunRecord:
    """One workflow run. `duration` is in milliseconds; every datetime is UTC, to the millisecond."""

    id: str
    created_at: datetime
    updated_at: datetime
    version: int
    workflow_id: str
    workflow_name: str
    workflow_type: str
    status: Status
    started_at: datetime | None
    completed_at: datetime | None
    duration: int | None
    input: JsonValue
    output: JsonValue
    config: JsonValue
    total_cost: float
    total_tokens: int
    priority: int
    metadata: JsonValue
    definition_version: str | None
    redrive_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeableRun:
    """A finished run that retention may delete, with the record ids of its stages (in their order in the run)."""

    id: str
    workflow_type: str
    status: Status
    stage_record_ids: tuple[str, ...]
