"""Rows of workflow_annotations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAnnotationRecord:
    """A fact that an actor attached to a run."""

    id: str
    created_at: datetime
    workflow_run_id: str
    workflow_stage_record_id: str | None
    attempt: int
    scope: str
    scope_id: str | None
    actor_kind: str | None
    actor_id: str | None
    actor_version: str | None
    key: str
    value: JsonValue
    payload: JsonValue
    idempotency_key: str | None
