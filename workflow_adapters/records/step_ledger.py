"""Rows of workflow_steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonObject, JsonValue
from workflow_adapters.records.status import StepKind, StepStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One durable step of a stage."""

    stage_record_id: str
    step_id: str
    seq: int
    kind: StepKind
    status: StepStatus
    attempt: int
    lease_expires_at: datetime | None
    deadline_at: datetime | None
    external_key: str | None
    result: JsonValue
    error: str | None
    wait_state: JsonObject | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StepClaim:
    """`created` is True for exactly one of any number of racing claims; `record` is the row that won."""

    created: bool
    record: StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCas:
    """Whether the compare-and-set applied, and the row as it stands afterwards (None when there is none)."""

    applied: bool
    record: StepRecord | None
