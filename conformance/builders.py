"""Inputs with everything that a clause does not care about filled in; any field may be given."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.inputs.annotations import CreateAnnotationInput
from workflow_adapters.inputs.job_queue import EnqueueJobInput
from workflow_adapters.inputs.outbox import CreateOutboxEventInput
from workflow_adapters.inputs.runs import CreateRunInput
from workflow_adapters.inputs.stages import CreateStageInput
from workflow_adapters.inputs.step_ledger import NewStep
from workflow_adapters.records.status import StepKind, StepStatus

_Fields: TypeAlias = dict[str, Any]

_RUN: Final[_Fields] = {"workflow_id": "flow", "workflow_name": "Flow", "workflow_type": "test", "input": {}}
_STAGE: Final[_Fields] = {"stage_name": "Stage", "stage_number": 1, "execution_group": 1}
_ANNOTATION: Final[_Fields] = {"scope": "run", "value": 1}
_EVENT: Final[_Fields] = {"payload": {}, "causation_id": "cause", "occurred_at": datetime(2026, 1, 1, tzinfo=UTC)}
_JOB: Final[_Fields] = {"workflow_id": "flow"}
_STEP: Final[_Fields] = {"seq": 1, "kind": StepKind.RUN, "status": StepStatus.RUNNING}
_CALL: Final[_Fields] = {
    "call_type": "text",
    "model_key": "small",
    "model_id": "small-1",
    "prompt": "Say one word.",
    "response": "Word.",
    "input_tokens": 4,
    "output_tokens": 1,
    "cost": 0.5,
}


def run(**fields: Any) -> CreateRunInput:
    return CreateRunInput(**(_RUN | fields))


def stage(run_id: str, stage_id: str = "stage", **fields: Any) -> CreateStageInput:
    return CreateStageInput(workflow_run_id=run_id, stage_id=stage_id, **(_STAGE | fields))


def annotation(run_id: str, key: str = "note", **fields: Any) -> CreateAnnotationInput:
    return CreateAnnotationInput(workflow_run_id=run_id, key=key, **(_ANNOTATION | fields))


def event(run_id: str, event_type: str = "happened", **fields: Any) -> CreateOutboxEventInput:
    return CreateOutboxEventInput(workflow_run_id=run_id, event_type=event_type, **(_EVENT | fields))


def job(run_id: str, stage_id: str = "stage", **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id=run_id, stage_id=stage_id, **(_JOB | fields))


def step(stage_record_id: str, step_id: str = "step", **fields: Any) -> NewStep:
    return NewStep(stage_record_id=stage_record_id, step_id=step_id, **(_STEP | fields))


def call(topic: str = "topic", **fields: Any) -> CreateAICallInput:
    return CreateAICallInput(topic=topic, **(_CALL | fields))
