"""workflow_runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import AlreadyExistsError, NotFoundError
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.runs import CreateRunInput, Serves, UpdateRunInput
from workflow_adapters.memory.adapter import MemoryAdapter, given, serves_run
from workflow_adapters.memory.rows import copied, detached
from workflow_adapters.memory.stages import remove_stage
from workflow_adapters.ports.runs import Runs
from workflow_adapters.records.runs import PurgeableRun, WorkflowRunRecord
from workflow_adapters.records.status import Status
from workflow_adapters.validation import check_version


@enforces(Runs)
class MemoryRuns(MemoryAdapter):
    async def create_run(self, run: CreateRunInput) -> WorkflowRunRecord:
        async with self._session.write() as tables:
            record = _new_run(run, self._session.now())
            if record.id in tables.runs:
                raise AlreadyExistsError("run", record.id)
            return detached(tables.runs.put(record))

    async def update_run(self, id: str, patch: UpdateRunInput) -> None:
        async with self._session.write() as tables:
            run = tables.runs.get(id)
            if run is None:
                raise NotFoundError("run", id)
            check_version("run", id, patch.expected_version, run.version)
            tables.runs.put(replace(run, version=run.version + 1, updated_at=self._session.now(), **given(patch)))

    async def get_run(self, id: str) -> WorkflowRunRecord | None:
        async with self._session.read() as tables:
            run = tables.runs.get(id)
            return None if run is None else detached(run)

    async def get_run_status(self, id: str) -> Status | None:
        async with self._session.read() as tables:
            run = tables.runs.get(id)
            return None if run is None else run.status

    async def get_stuck_runs(self, stuck_since: datetime) -> list[WorkflowRunRecord]:
        async with self._session.read() as tables:
            stuck = [
                run
                for run in tables.runs.by_status[Status.RUNNING]
                if run.updated_at <= stuck_since
                and all(stage.updated_at <= stuck_since for stage in tables.stages.by_run[run.id])
            ]
            return [detached(run) for run in sorted(stuck, key=lambda run: (run.updated_at, run.id))]

    async def claim_next_pending_run(
        self, now: datetime | None = None, serves: Serves = None
    ) -> WorkflowRunRecord | None:
        async with self._session.write() as tables:
            now = now or self._session.now()
            pending = tables.runs.by_status.iterate(Status.PENDING)
            run = next((run for run in pending if serves_run(run, serves)), None)
            if run is None:
                return None
            claimed = replace(run, status=Status.RUNNING, started_at=now, updated_at=now, version=run.version + 1)
            return detached(tables.runs.put(claimed))

    async def list_runs_for_purge(self, cutoff: datetime, statuses: Sequence[Status], limit: int) -> list[PurgeableRun]:
        def finished_at(run: WorkflowRunRecord) -> datetime:
            return run.completed_at or run.updated_at

        async with self._session.read() as tables:
            finished = [
                run
                for status in set(statuses)
                for run in tables.runs.by_status.iterate(status)
                if finished_at(run) <= cutoff
            ]
            finished.sort(key=lambda run: (finished_at(run), run.id))
            return [
                PurgeableRun(
                    id=run.id,
                    workflow_type=run.workflow_type,
                    status=run.status,
                    stage_record_ids=tuple(stage.id for stage in tables.stages.by_run[run.id]),
                )
                for run in islice(finished, limit)
            ]

    async def delete_run(self, id: str) -> None:
        async with self._session.write() as tables:
            run = tables.runs.get(id)
            if run is None:
                return
            for stage in tables.stages.by_run[id]:
                remove_stage(tables, stage)
            for log in tables.logs.by_run[id]:
                tables.logs.remove(log)
            for annotation in tables.annotations.by_run[id]:
                tables.annotations.remove(annotation)
            for artifact in tables.artifacts.by_run[id]:
                tables.artifacts.remove(artifact)
            tables.runs.remove(run)


def _new_run(run: CreateRunInput, now: datetime) -> WorkflowRunRecord:
    return WorkflowRunRecord(
        id=run.id or new_id(),
        created_at=now,
        updated_at=now,
        version=1,
        workflow_id=run.workflow_id,
        workflow_name=run.workflow_name,
        workflow_type=run.workflow_type,
        status=Status.PENDING,
        started_at=None,
        completed_at=None,
        duration=None,
        input=copied(run.input),
        output=None,
        config=copied(run.config),
        total_cost=0.0,
        total_tokens=0,
        priority=run.priority,
        metadata=copied(run.metadata),
        definition_version=run.definition_version,
        redrive_count=0,
    )
