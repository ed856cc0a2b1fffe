"""workflow_stages."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import islice

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import AlreadyExistsError, NotFoundError
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.inputs.stages import CreateStageInput, UpdateStageInput, UpsertStageInput
from workflow_adapters.memory.adapter import MemoryAdapter, given, require_run, serves_run
from workflow_adapters.memory.rows import copied, detached
from workflow_adapters.memory.tables import Tables
from workflow_adapters.ports.stages import Order, Stages
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status
from workflow_adapters.unset import Unset
from workflow_adapters.validation import check_version


@enforces(Stages)
class MemoryStages(MemoryAdapter):
    async def create_stage(self, stage: CreateStageInput) -> WorkflowStageRecord:
        async with self._session.write() as tables:
            require_run(tables, stage.workflow_run_id)
            if tables.stages.by_pair.get((stage.workflow_run_id, stage.stage_id)) is not None:
                raise AlreadyExistsError("stage", f"{stage.workflow_run_id}/{stage.stage_id}")
            record = _new_stage(stage, self._session.now(), Status.PENDING, None)
            return detached(tables.stages.put(record))

    async def upsert_stage(self, stage: UpsertStageInput) -> WorkflowStageRecord:
        async with self._session.write() as tables:
            now, create = self._session.now(), stage.create
            require_run(tables, create.workflow_run_id)
            stored = tables.stages.by_pair.get((create.workflow_run_id, create.stage_id))
            if stored is None:
                return detached(tables.stages.put(_new_stage(create, now, Status.RUNNING, now)))
            return detached(tables.stages.put(_updated(stored, stage.update, now)))

    async def update_stage(self, id: str, patch: UpdateStageInput) -> None:
        async with self._session.write() as tables:
            stage = tables.stages.get(id)
            if stage is None:
                raise NotFoundError("stage", id)
            tables.stages.put(_updated(stage, patch, self._session.now()))

    async def get_stage(self, run_id: str, stage_id: str) -> WorkflowStageRecord | None:
        async with self._session.read() as tables:
            stage = tables.stages.by_pair.get((run_id, stage_id))
            return None if stage is None else detached(stage)

    async def get_stages_by_run(
        self, run_id: str, status: Status | None = None, order: Order = "asc"
    ) -> list[WorkflowStageRecord]:
        async with self._session.read() as tables:
            stages = [stage for stage in tables.stages.by_run[run_id] if status in (None, stage.status)]
            return [detached(stage) for stage in (stages if order == "asc" else reversed(stages))]

    async def get_suspended_stages(
        self, before: datetime, limit: int | None = None, serves: Serves = None
    ) -> list[WorkflowStageRecord]:
        async with self._session.read() as tables:
            due = (
                stage
                for stage in tables.stages.by_status.iterate(Status.SUSPENDED)
                if stage.next_poll_at is not None
                and stage.next_poll_at <= before
                and _serves_stage(tables, stage, serves)
            )
            return [detached(stage) for stage in islice(due, limit)]

    async def delete_stage(self, id: str) -> None:
        async with self._session.write() as tables:
            stage = tables.stages.get(id)
            if stage is not None:
                remove_stage(tables, stage)


def remove_stage(tables: Tables, stage: WorkflowStageRecord) -> None:
    """Remove the stage with its steps and logs, and its id from annotations and artifacts, of other runs too."""
    for step in tables.steps.by_stage[stage.id]:
        tables.steps.remove(step)
    for log in tables.logs.by_stage[stage.id]:
        tables.logs.remove(log)
    for annotation in tables.annotations.by_stage[stage.id]:
        tables.annotations.put(replace(annotation, workflow_stage_record_id=None))
    for artifact in tables.artifacts.by_stage[stage.id]:
        tables.artifacts.put(replace(artifact, workflow_stage_id=None))
    tables.stages.remove(stage)


def _updated(stage: WorkflowStageRecord, patch: UpdateStageInput, now: datetime) -> WorkflowStageRecord:
    check_version("stage", stage.id, patch.expected_version, stage.version)
    return replace(stage, version=stage.version + 1, updated_at=now, **given(patch))


def _serves_stage(tables: Tables, stage: WorkflowStageRecord, serves: Serves) -> bool:
    run = tables.runs.get(stage.workflow_run_id)
    return run is not None and serves_run(run, serves)


def _new_stage(
    stage: CreateStageInput, now: datetime, status: Status, started_at: datetime | None
) -> WorkflowStageRecord:
    """The row of a stage whose status or started_at, where unset, are these."""
    return WorkflowStageRecord(
        id=new_id(),
        created_at=now,
        updated_at=now,
        version=1,
        workflow_run_id=stage.workflow_run_id,
        stage_id=stage.stage_id,
        stage_name=stage.stage_name,
        stage_number=stage.stage_number,
        execution_group=stage.execution_group,
        attempt=stage.attempt,
        status=status if isinstance(stage.status, Unset) else stage.status,
        started_at=started_at if isinstance(stage.started_at, Unset) else stage.started_at,
        completed_at=None,
        duration=None,
        input_data=copied(stage.input_data),
        output_data=None,
        config=copied(stage.config),
        suspended_state=None,
        resume_data=None,
        next_poll_at=None,
        poll_interval=None,
        max_wait_until=None,
        metrics=None,
        embedding_info=None,
        error_message=None,
    )
