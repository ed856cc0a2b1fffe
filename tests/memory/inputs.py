"""Inputs with everything but the point of a test filled in."""

from datetime import UTC, datetime
from typing import Any

from workflow_adapters import (
    CreateAICallInput,
    CreateAnnotationInput,
    CreateOutboxEventInput,
    CreateRunInput,
    CreateStageInput,
    EnqueueJobInput,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def run(run_id: str = "r", **fields: Any) -> CreateRunInput:
    given: dict[str, Any] = {"workflow_id": "w", "workflow_name": "n", "workflow_type": "t", "input": None}
    return CreateRunInput(id=run_id, **{**given, **fields})


def stage(stage_id: str = "s", run_id: str = "r", **fields: Any) -> CreateStageInput:
    given: dict[str, Any] = {"stage_name": "n", "stage_number": 1, "execution_group": 1}
    return CreateStageInput(workflow_run_id=run_id, stage_id=stage_id, **{**given, **fields})


def job(stage_id: str = "s", run_id: str = "r", **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id=run_id, stage_id=stage_id, **{"workflow_id": "w", **fields})


def event(run_id: str = "r", event_type: str = "e", **fields: Any) -> CreateOutboxEventInput:
    given: dict[str, Any] = {"payload": {}, "causation_id": "c", "occurred_at": START}
    return CreateOutboxEventInput(workflow_run_id=run_id, event_type=event_type, **{**given, **fields})


def annotation(key: str = "k", run_id: str = "r", **fields: Any) -> CreateAnnotationInput:
    return CreateAnnotationInput(workflow_run_id=run_id, scope="run", key=key, **{"value": 1, **fields})


def ai_call(topic: str = "t", **fields: Any) -> CreateAICallInput:
    given: dict[str, Any] = {
        "call_type": "chat",
        "model_key": "m",
        "model_id": "m-1",
        "prompt": "p",
        "response": "r",
        "input_tokens": 1,
        "output_tokens": 2,
        "cost": 0.1,
    }
    return CreateAICallInput(topic=topic, **{**given, **fields})
