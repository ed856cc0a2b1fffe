"""Inputs for workflow_stages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonValue, json_value
from workflow_adapters.records.status import Status
from workflow_adapters.unset import UNSET, Unset
from workflow_adapters.validation import instance, instant, int32, key, member, non_negative, normalise, optional, text


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStageInput:
    """A new stage. An unset `status` is PENDING for create_stage and RUNNING for upsert_stage.

    An unset `started_at` is None for create_stage and now for upsert_stage.
    """

    workflow_run_id: str
    stage_id: str
    stage_name: str
    stage_number: int
    execution_group: int
    attempt: int = 0
    status: Status | Unset = UNSET
    started_at: datetime | None | Unset = UNSET
    config: JsonValue = None
    input_data: JsonValue = None

    def __post_init__(self) -> None:
        normalise(
            self,
            workflow_run_id=key,
            stage_id=key,
            stage_name=key,
            stage_number=int32,
            execution_group=int32,
            attempt=int32,
            status=member(Status),
            started_at=optional(instant),
            config=json_value,
            input_data=json_value,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStageInput:
    """A patch: a field left out (UNSET) keeps its column, any other value is written.

    `duration` and `poll_interval` are in milliseconds. `expected_version` is compared, not written.
    """

    status: Status | Unset = UNSET
    attempt: int | Unset = UNSET
    started_at: datetime | None | Unset = UNSET
    completed_at: datetime | None | Unset = UNSET
    duration: int | None | Unset = UNSET
    input_data: JsonValue | Unset = UNSET
    output_data: JsonValue | Unset = UNSET
    config: JsonValue | Unset = UNSET
    suspended_state: JsonValue | Unset = UNSET
    resume_data: JsonValue | Unset = UNSET
    next_poll_at: datetime | None | Unset = UNSET
    poll_interval: int | None | Unset = UNSET
    max_wait_until: datetime | None | Unset = UNSET
    metrics: JsonValue | Unset = UNSET
    embedding_info: JsonValue | Unset = UNSET
    error_message: str | None | Unset = UNSET
    expected_version: int | Unset = UNSET

    def __post_init__(self) -> None:
        normalise(
            self,
            status=member(Status),
            attempt=int32,
            started_at=optional(instant),
            completed_at=optional(instant),
            duration=optional(non_negative),
            input_data=json_value,
            output_data=json_value,
            config=json_value,
            suspended_state=json_value,
            resume_data=json_value,
            next_poll_at=optional(instant),
            poll_interval=optional(non_negative),
            max_wait_until=optional(instant),
            metrics=json_value,
            embedding_info=json_value,
            error_message=optional(text),
            expected_version=int32,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertStageInput:
    """`create` names the (run, stage) pair and the new row; `update` is applied when the pair exists."""

    create: CreateStageInput
    update: UpdateStageInput

    def __post_init__(self) -> None:
        normalise(self, create=instance(CreateStageInput), update=instance(UpdateStageInput))
