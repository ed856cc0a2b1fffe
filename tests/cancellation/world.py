"""Rows of one attempt, and what can be seen of them: enough to tell whether a call had its whole effect or none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from workflow_adapters import (
    BuiltInAdapters,
    CreateAICallInput,
    CreateAnnotationInput,
    CreateLogInput,
    CreateOutboxEventInput,
    CreateRunInput,
    CreateStageInput,
    DequeueResult,
    EnqueueJobInput,
    NewStep,
    ServedDefinition,
    WorkflowStageRecord,
)
from workflow_adapters.records.status import LogLevel, StepKind, StepStatus

LATER: Final = datetime(2100, 1, 1, tzinfo=UTC)
STALE: Final = timedelta(days=-1)


@dataclass(frozen=True, slots=True)
class World:
    """The rows of one attempt carry its `tag`: attempts share a database and do not see each other."""

    adapters: BuiltInAdapters
    tag: str

    @property
    def persistence(self) -> Any:
        """Any, because the cases also call capabilities that the port's type does not have."""
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

    @property
    def serves(self) -> list[ServedDefinition]:
        return [ServedDefinition(workflow_id=self.tag, version="1")]

    def run(self) -> CreateRunInput:
        return CreateRunInput(id=self.tag, workflow_id=self.tag, workflow_name="n", workflow_type="t", input={"a": [1]})

    def stage(self, stage_id: str = "s") -> CreateStageInput:
        return CreateStageInput(
            workflow_run_id=self.tag, stage_id=stage_id, stage_name="n", stage_number=1, execution_group=1
        )

    def job(self, stage_id: str = "s") -> EnqueueJobInput:
        return EnqueueJobInput(workflow_run_id=self.tag, workflow_id=self.tag, stage_id=stage_id)

    def event(self, event_type: str = "e") -> CreateOutboxEventInput:
        return CreateOutboxEventInput(
            workflow_run_id=self.tag,
            event_type=event_type,
            payload={},
            causation_id="c",
            occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        )

    def annotation(self, key: str = "k") -> CreateAnnotationInput:
        return CreateAnnotationInput(workflow_run_id=self.tag, scope="run", key=key, value=1)

    def log(self) -> CreateLogInput:
        return CreateLogInput(level=LogLevel.INFO, message="m", workflow_run_id=self.tag)

    def step(self, stage: WorkflowStageRecord, step_id: str = "a") -> NewStep:
        return NewStep(stage_record_id=stage.id, step_id=step_id, seq=1, kind=StepKind.RUN, status=StepStatus.RUNNING)

    def ai_call(self, request_id: str | None = None) -> CreateAICallInput:
        return CreateAICallInput(
            topic=self.tag,
            call_type="chat",
            model_key="m",
            model_id="m-1",
            prompt="p",
            response="r",
            input_tokens=1,
            output_tokens=1,
            cost=0.1,
            request_id=request_id,
        )

    async def with_run(self) -> None:
        await self.adapters.persistence.create_run(self.run())

    async def with_stage(self) -> WorkflowStageRecord:
        await self.with_run()
        return await self.adapters.persistence.create_stage(self.stage())

    async def with_steps(self) -> WorkflowStageRecord:
        stage = await self.with_stage()
        await self.adapters.step_ledger.claim(self.step(stage))
        await self.adapters.step_ledger.claim(self.step(stage, "b"))
        return stage

    async def with_jobs(self) -> list[str]:
        return await self.adapters.job_queue.enqueue_parallel([self.job("s"), self.job("t")])

    async def with_events(self) -> list[str]:
        await self.adapters.persistence.append_outbox_events([self.event("first"), self.event("second")])
        return [event.id for event in await self.events()]

    async def with_claimed_job(self) -> DequeueResult:
        await self.with_jobs()
        claimed = await self.adapters.job_queue.dequeue(self.serves)
        assert claimed is not None
        return claimed

    async def events(self) -> list[Any]:
        unpublished = await self.adapters.persistence.get_unpublished_outbox_events(1_000_000)
        return [event for event in unpublished if event.workflow_run_id == self.tag]


async def seen(world: World) -> Any:
    """Everything of the attempt that the ports show, without ids and instants."""
    a = world.adapters
    stages = await a.persistence.get_stages_by_run(world.tag)
    dead = await a.operations.list_dead_outbox_events(limit=1000)
    key = await a.persistence.acquire_idempotency_key(world.tag, "command")
    found = {
        "run": await a.persistence.get_run(world.tag),
        "stages": stages,
        "steps": [step for stage in stages for step in await a.step_ledger.list(stage.id)],
        "logs": (await a.operations.list_logs(world.tag)).items,
        "annotations": await a.persistence.list_annotations(world.tag),
        "definition": await a.persistence.get_definition(world.tag, "1"),
        "events": await world.events(),
        "dead": [event for event in dead.items if event.workflow_run_id == world.tag],
        "key": key,
        "jobs": await a.job_queue.get_jobs_by_workflow_run(world.tag),
        "calls": await a.ai_call_logger.list_calls(world.tag),
    }
    return _plain(found, world.tag)


_IDS: Final = frozenset({"id", "job_id", "stage_record_id", "workflow_stage_record_id", "worker_id", "fence"})


def _plain(value: Any, tag: str) -> Any:
    if is_dataclass(value):
        shown = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in _IDS}
        return type(value).__name__, _plain(shown, tag)
    if isinstance(value, dict):
        return {name: _plain(item, tag) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, tag) for item in value]
    if isinstance(value, datetime):
        return "an instant"
    return value.replace(tag, "TAG") if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Case:
    """A call on a bundle. `prepare` makes what it needs and answers what `call` is given besides the world."""

    name: str
    prepare: Callable[[World], Awaitable[Any]]
    call: Callable[[World, Any], Awaitable[Any]]
