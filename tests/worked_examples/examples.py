"""Worked examples: for each method, what goes in, what must come out, and the sentence of the contract that says so.

They were transcribed by hand from the contract before the adapters existed. An example answers (observed, expected).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from workflow_adapters import (
    Adapters,
    CreateAICallInput,
    CreateAnnotationInput,
    CreateOutboxEventInput,
    CreateRunInput,
    CreateStageInput,
    EnqueueJobInput,
    JobQueueFairness,
    ManualClock,
    NewStep,
    StepKind,
    StepStatus,
    WorkflowAdapterError,
)

START: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
LONG_AGO: Final = datetime(2020, 1, 1, tzinfo=UTC)
FAR_AHEAD: Final = datetime(2099, 1, 1, tzinfo=UTC)

Pair: TypeAlias = tuple[object, object]


@dataclass(frozen=True, kw_only=True)
class World:
    """A fresh, migrated bundle and the clock it was given."""

    adapters: Adapters
    clock: ManualClock

    @property
    def persistence(self) -> Any:
        return self.adapters.persistence

    @property
    def queue(self) -> Any:
        return self.adapters.job_queue

    @property
    def ledger(self) -> Any:
        return self.adapters.step_ledger

    @property
    def logger(self) -> Any:
        return self.adapters.ai_call_logger

    @property
    def operations(self) -> Any:
        return self.adapters.operations

    async def stage_record_id(self, run_id: str = "r1", stage_id: str = "s1") -> str:
        if await self.persistence.get_run(run_id) is None:
            await self.persistence.create_run(run(run_id))
        return (await self.persistence.create_stage(stage(run_id, stage_id))).id


Body: TypeAlias = Callable[[World], Awaitable[Pair]]


@dataclass(frozen=True, kw_only=True)
class Example:
    """`clock` says that the example needs to move the queue's clock, which a database's own clock does not allow."""

    method: str
    sentence: str
    body: Body
    clock: bool
    fairness: JobQueueFairness | None


EXAMPLES: Final[list[Example]] = []


def example(
    method: str, sentence: str, *, clock: bool = False, fairness: JobQueueFairness | None = None
) -> Callable[[Body], Body]:
    def register(body: Body) -> Body:
        EXAMPLES.append(Example(method=method, sentence=sentence, body=body, clock=clock, fairness=fairness))
        return body

    return register


async def error_of(call: Awaitable[object]) -> tuple[object, ...]:
    """The class of the error that a call raises, followed by the fields that say what it is about."""
    try:
        await call
    except WorkflowAdapterError as error:
        names = ("entity", "id", "expected", "actual", "path")
        return (type(error).__name__, *(getattr(error, name) for name in names if hasattr(error, name)))
    return ("no error",)


def run(id: str = "r1", **fields: Any) -> CreateRunInput:
    given = {"workflow_id": "w", "workflow_name": "W", "workflow_type": "t", "input": {"n": 1}, **fields}
    return CreateRunInput(id=id, **given)


def stage(run_id: str = "r1", stage_id: str = "s1", **fields: Any) -> CreateStageInput:
    given = {"stage_name": "S", "stage_number": 1, "execution_group": 1, **fields}
    return CreateStageInput(workflow_run_id=run_id, stage_id=stage_id, **given)


def job(stage_id: str = "s1", run_id: str = "r1", **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(**{"workflow_run_id": run_id, "workflow_id": "w", "stage_id": stage_id, **fields})


def event(run_id: str = "r1", **fields: Any) -> CreateOutboxEventInput:
    given = {"event_type": "e", "payload": {}, "causation_id": "c", "occurred_at": START, **fields}
    return CreateOutboxEventInput(workflow_run_id=run_id, **given)


def annotation(key: str = "k", run_id: str = "r1", **fields: Any) -> CreateAnnotationInput:
    return CreateAnnotationInput(**{"workflow_run_id": run_id, "scope": "run", "key": key, "value": 1, **fields})


def step(stage_record_id: str, step_id: str = "a", **fields: Any) -> NewStep:
    given = {"seq": 1, "kind": StepKind.RUN, "status": StepStatus.RUNNING, **fields}
    return NewStep(stage_record_id=stage_record_id, step_id=step_id, **given)


def call(topic: str = "t", **fields: Any) -> CreateAICallInput:
    given = {
        "call_type": "text",
        "model_key": "k",
        "model_id": "m",
        "prompt": "p",
        "response": "r",
        "input_tokens": 10,
        "output_tokens": 5,
        "cost": 0.1,
        **fields,
    }
    return CreateAICallInput(topic=topic, **given)
