"""workflow_artifacts, and the reads that the conveniences stand on."""

from __future__ import annotations

from workflow_adapters.arguments import enforces
from workflow_adapters.conveniences import ConvenienceRows
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.artifacts import SaveArtifactInput
from workflow_adapters.memory.adapter import MemoryAdapter, require_run, require_stage
from workflow_adapters.memory.rows import copied, detached
from workflow_adapters.records.artifacts import WorkflowArtifactRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status


@enforces(ConvenienceRows)
class MemoryArtifacts(MemoryAdapter):
    async def get_runs_by_status(self, status: Status) -> list[WorkflowRunRecord]:
        async with self._session.read() as tables:
            runs = tables.runs.by_status[status]
            return [detached(run) for run in sorted(runs, key=lambda run: (run.created_at, run.id))]

    async def get_stage_by_id(self, id: str) -> WorkflowStageRecord | None:
        async with self._session.read() as tables:
            stage = tables.stages.get(id)
            return None if stage is None else detached(stage)

    async def save_artifact(self, artifact: SaveArtifactInput) -> None:
        async with self._session.write() as tables:
            require_run(tables, artifact.workflow_run_id)
            require_stage(tables, artifact.workflow_stage_id)
            now = self._session.now()
            stored = tables.artifacts.get((artifact.workflow_run_id, artifact.key))
            record = WorkflowArtifactRecord(
                id=new_id() if stored is None else stored.id,
                created_at=now if stored is None else stored.created_at,
                updated_at=now,
                workflow_run_id=artifact.workflow_run_id,
                workflow_stage_id=artifact.workflow_stage_id,
                key=artifact.key,
                type=artifact.type,
                data=copied(artifact.data),
                size=artifact.stored_size,
                metadata=copied(artifact.metadata),
            )
            tables.artifacts.put(record)

    async def get_artifact(self, run_id: str, key: str) -> WorkflowArtifactRecord | None:
        async with self._session.read() as tables:
            artifact = tables.artifacts.get((run_id, key))
            return None if artifact is None else detached(artifact)

    async def delete_artifact(self, run_id: str, key: str) -> None:
        async with self._session.write() as tables:
            artifact = tables.artifacts.get((run_id, key))
            if artifact is not None:
                tables.artifacts.remove(artifact)

    async def list_artifacts(self, run_id: str) -> list[WorkflowArtifactRecord]:
        async with self._session.read() as tables:
            return [detached(artifact) for artifact in tables.artifacts.by_run[run_id]]
