"""Inputs for workflow_steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonObject, JsonValue, json_object, json_value
from workflow_adapters.records.status import StepKind, StepStatus
from workflow_adapters.unset import UNSET, Unset
from workflow_adapters.validation import instant, int32, key, member, normalise, optional, text


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStep:
    """A step to claim: every field of a StepRecord but the two stamps."""

    stage_record_id: str
    step_id: str
    seq: int
    kind: StepKind
    status: StepStatus
    attempt: int = 1
    lease_expires_at: datetime | None = None
    deadline_at: datetime | None = None
    external_key: str | None = None
    result: JsonValue = None
    error: str | None = None
    wait_state: JsonObject | None = None

    def __post_init__(self) -> None:
        normalise(
            self,
            stage_record_id=key,
            step_id=key,
            seq=int32,
            kind=member(StepKind),
            status=member(StepStatus),
            attempt=int32,
            lease_expires_at=optional(instant),
            deadline_at=optional(instant),
            external_key=optional(key),
            result=json_value,
            error=optional(text),
            wait_state=optional(json_object),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecordPatch:
    """A patch: a field left out (UNSET) keeps its column, any other value is written."""

    status: StepStatus | Unset = UNSET
    attempt: int | Unset = UNSET
    lease_expires_at: datetime | None | Unset = UNSET
    deadline_at: datetime | None | Unset = UNSET
    result: JsonValue | Unset = UNSET
    error: str | None | Unset = UNSET
    wait_state: JsonObject | None | Unset = UNSET

    def __post_init__(self) -> None:
        normalise(
            self,
            status=member(StepStatus),
            attempt=int32,
            lease_expires_at=optional(instant),
            deadline_at=optional(instant),
            result=json_value,
            error=optional(text),
            wait_state=optional(json_object),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecordExpectation:
    """What a compare-and-set expects of the row; an unset attempt matches any."""

    status: StepStatus
    attempt: int | Unset = UNSET

    def __post_init__(self) -> None:
        if self.attempt is None:  # pyright: ignore[reportUnnecessaryComparison]  # `attempt?`: None is the same as left out
            object.__setattr__(self, "attempt", UNSET)
        normalise(self, status=member(StepStatus), attempt=int32)
