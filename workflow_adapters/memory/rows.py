"""Rows that hold more than the records handed out, and how JSON is copied on its way in and out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from workflow_adapters.json_values import JsonValue
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.records.annotations import WorkflowAnnotationRecord
from workflow_adapters.records.artifacts import WorkflowArtifactRecord
from workflow_adapters.records.definitions import WorkflowDefinitionRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status
from workflow_adapters.records.step_ledger import StepRecord

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as stored: `payload` still has the reserved members, and need not be an object."""

    id: str
    created_at: datetime
    updated_at: datetime
    workflow_run_id: str
    stage_id: str
    status: Status
    priority: int
    payload: JsonValue
    max_attempts: int
    attempt: int = 0
    worker_id: str | None = None
    locked_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    last_error: str | None = None
    next_poll_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """An event as stored. A lease is over at `lease_expires_at`, whether or not it is cleared by then."""

    event: OutboxRecord
    lease_token: str | None = None
    lease_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRow:
    """A key as stored; `created_at` is the instant of its acquisition."""

    id: str
    created_at: datetime
    key: str
    command_type: str
    in_progress: bool
    result: JsonValue


_JSON_FIELDS: Final[dict[type, tuple[str, ...]]] = {
    WorkflowRunRecord: ("input", "output", "config", "metadata"),
    WorkflowStageRecord: (
        "input_data",
        "output_data",
        "config",
        "suspended_state",
        "resume_data",
        "metrics",
        "embedding_info",
    ),
    WorkflowDefinitionRecord: ("snapshot",),
    WorkflowLogRecord: ("metadata",),
    WorkflowAnnotationRecord: ("value", "payload"),
    WorkflowArtifactRecord: ("data", "metadata"),
    OutboxRecord: ("payload",),
    StepRecord: ("result", "wait_state"),
    AICallRecord: ("metadata",),
}


def copied(value: Any) -> Any:
    """A deep copy of a value if it is JSON with members; whoever changes one does not change the other."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: copied(member) for name, member in members.items()}
    if isinstance(value, list):
        return [copied(item) for item in cast("list[Any]", value)]
    return value


def detached(record: R) -> R:
    """The record with its JSON copied."""
    copies = {
        name: copied(value)
        for name in _JSON_FIELDS[type(record)]
        if isinstance(value := getattr(record, name), dict | list)
    }
    return replace(cast("Any", record), **copies) if copies else record
