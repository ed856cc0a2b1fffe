"""Plain methods of the built-in adapters that are older than the ports, written once on top of them.

Rule source: the contract's section on the pre-1.0 conveniences. A backend inherits the mixins and supplies the few
methods of `ConvenienceRows`, which no port has. The mixins are Protocols so that the types in `built_in` can have them.
"""

from __future__ import annotations

from typing import Final, Protocol

from workflow_adapters.arguments import checked
from workflow_adapters.clock import Clock
from workflow_adapters.errors import BackendBusyError, NotFoundError, StaleVersionError
from workflow_adapters.inputs.artifacts import SaveArtifactInput
from workflow_adapters.inputs.job_queue import EnqueueJobInput
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.json_values import JsonValue, json_value
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.artifacts import MISSING, Missing, WorkflowArtifactRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import ArtifactType, Status
from workflow_adapters.validation import instance, instant, key, member

_CLAIM_TRIES: Final = 20


class ConvenienceRows(Protocol):
    """What a backend supplies: reads that the port lacks, and the artifacts table."""

    @property
    def clock(self) -> Clock:
        """The adapter's Clock."""
        ...

    @checked(status=member(Status))
    async def get_runs_by_status(self, status: Status) -> list[WorkflowRunRecord]:
        """Runs in the status, oldest first (created_at, then id)."""
        ...

    @checked(id=key)
    async def get_stage_by_id(self, id: str) -> WorkflowStageRecord | None:
        """The stage with this record id, or None."""
        ...

    @checked(artifact=instance(SaveArtifactInput))
    async def save_artifact(self, artifact: SaveArtifactInput) -> None:
        """Store the artifact, or replace everything but id and created_at of the one under its (run, key).

        Unknown run or stage: NotFoundError.
        """
        ...

    @checked(run_id=key, key=key)
    async def get_artifact(self, run_id: str, key: str) -> WorkflowArtifactRecord | None:
        """The artifact under (run, key), or None."""
        ...

    @checked(run_id=key, key=key)
    async def delete_artifact(self, run_id: str, key: str) -> None:
        """Delete the artifact. Unknown: no-op."""
        ...

    @checked(run_id=key)
    async def list_artifacts(self, run_id: str) -> list[WorkflowArtifactRecord]:
        """Artifacts of the run, by key."""
        ...


class _Persistence(WorkflowPersistence, ConvenienceRows, Protocol):
    """What the mixin stands on."""


class PersistenceConveniences(Protocol):
    """Conveniences of a built-in persistence adapter."""

    async def claim_pending_run(self: _Persistence, id: str) -> bool:
        """Take one run: PENDING to RUNNING with started_at = now and version + 1; False if it is not PENDING."""
        for _ in range(_CLAIM_TRIES):
            run = await self.get_run(id)
            if run is None or run.status is not Status.PENDING:
                return False
            now = instant("clock", self.clock.now())
            patch = UpdateRunInput(status=Status.RUNNING, started_at=now, expected_version=run.version)
            try:
                await self.update_run(id, patch)
            except StaleVersionError:
                continue
            except NotFoundError:
                return False
            return True
        raise BackendBusyError(f"run {id!r} changed {_CLAIM_TRIES} times while it was being claimed")

    async def update_stage_by_run_and_stage_id(
        self: _Persistence, run_id: str, stage_id: str, patch: UpdateStageInput
    ) -> None:
        """update_stage for the stage of the pair. Unknown pair: NotFoundError with the id ``"run/stage"``."""
        stage = await self.get_stage(run_id, stage_id)
        if stage is None:
            raise NotFoundError("stage", f"{run_id}/{stage_id}")
        await self.update_stage(stage.id, patch)

    async def get_first_suspended_stage_ready_to_resume(self: _Persistence, run_id: str) -> WorkflowStageRecord | None:
        """The first SUSPENDED stage of the run, by (execution_group, stage_number), that waits for no poll."""
        suspended = await self.get_stages_by_run(run_id, Status.SUSPENDED)
        return next((stage for stage in suspended if stage.next_poll_at is None), None)

    async def get_first_failed_stage(self: _Persistence, run_id: str) -> WorkflowStageRecord | None:
        """The first FAILED stage of the run, by (execution_group, stage_number)."""
        failed = await self.get_stages_by_run(run_id, Status.FAILED)
        return failed[0] if failed else None

    async def get_last_completed_stage(self: _Persistence, run_id: str) -> WorkflowStageRecord | None:
        """The last COMPLETED stage of the run, by (execution_group, stage_number)."""
        completed = await self.get_stages_by_run(run_id, Status.COMPLETED, "desc")
        return completed[0] if completed else None

    async def get_last_completed_stage_before(
        self: _Persistence, run_id: str, execution_group: int
    ) -> WorkflowStageRecord | None:
        """The last COMPLETED stage of an earlier execution group."""
        completed = await self.get_stages_by_run(run_id, Status.COMPLETED, "desc")
        return next((stage for stage in completed if stage.execution_group < execution_group), None)

    async def load_artifact(self: _Persistence, run_id: str, key: str) -> JsonValue | Missing:
        """The data of the artifact, or MISSING (None is data)."""
        artifact = await self.get_artifact(run_id, key)
        return MISSING if artifact is None else artifact.data

    async def has_artifact(self: _Persistence, run_id: str, key: str) -> bool:
        """Whether there is an artifact under (run, key)."""
        return await self.get_artifact(run_id, key) is not None

    async def get_stage_id_for_artifact(self: _Persistence, run_id: str, stage_id: str) -> str | None:
        """The record id of the stage, or None."""
        stage = await self.get_stage(run_id, stage_id)
        return None if stage is None else stage.id

    async def save_stage_output(
        self: _Persistence, run_id: str, workflow_type: str, stage_id: str, output: JsonValue
    ) -> str:
        """Store a stage's output as an artifact and return its key, which the engine's layout fixes."""
        output = json_value("output", output)
        stage = await self.get_stage(run_id, stage_id)
        artifact = SaveArtifactInput(
            workflow_run_id=run_id,
            key=f"workflow-v2/{key('workflow_type', workflow_type)}/{run_id}/{stage_id}/output.json",
            type=ArtifactType.STAGE_OUTPUT,
            data=output,
            workflow_stage_id=None if stage is None else stage.id,
        )
        await self.save_artifact(artifact)
        return artifact.key


class JobQueueConveniences(Protocol):
    """Conveniences of a built-in job queue."""

    async def enqueue(self: JobQueue, job: EnqueueJobInput) -> str:
        """enqueue_parallel for one job; returns its id."""
        (job_id,) = await self.enqueue_parallel([job])
        return job_id
