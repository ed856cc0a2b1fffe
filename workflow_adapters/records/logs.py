"""Rows of workflow_logs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonValue
from workflow_adapters.records.status import LogLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowLogRecord:
    """One log line of a run or stage."""

    id: str
    created_at: datetime
    workflow_run_id: str | None
    workflow_stage_id: str | None
    level: LogLevel
    message: str
    metadata: JsonValue
