"""Inputs for workflow_logs."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_adapters.json_values import JsonValue, json_value
from workflow_adapters.records.status import LogLevel
from workflow_adapters.validation import key, member, normalise, optional, text


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateLogInput:
    """A log line. `workflow_stage_id` is the stage's record id."""

    level: LogLevel
    message: str
    workflow_run_id: str | None = None
    workflow_stage_id: str | None = None
    metadata: JsonValue = None

    def __post_init__(self) -> None:
        normalise(
            self,
            level=member(LogLevel),
            message=text,
            workflow_run_id=optional(key),
            workflow_stage_id=optional(key),
            metadata=json_value,
        )
