"""What the conveniences stand on besides the port: a few reads, and workflow_artifacts."""

from __future__ import annotations

from workflow_adapters.arguments import enforces
from workflow_adapters.clock import Clock
from workflow_adapters.conveniences import ConvenienceRows
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.artifacts import SaveArtifactInput
from workflow_adapters.records.artifacts import WorkflowArtifactRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status
from workflow_adapters.sql.columns import json_argument
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.results import every, first, insert_under_parents, none
from workflow_adapters.sql.statement import Statement
from workflow_adapters.sql.tables import ARTIFACT, RUN, STAGE


@enforces(ConvenienceRows)
class SqlConvenienceRows(SqlPort):
    @property
    def clock(self) -> Clock:
        return self._database

    async def get_runs_by_status(self, status: Status) -> list[WorkflowRunRecord]:
        statement = Statement(
            """
            SELECT @run.columns
            FROM @workflow_runs
            WHERE status = $1::text::@Status
            ORDER BY "createdAt", id COLLATE "C"
            """,
            (status,),
        )
        return await self._database.read(lambda: every(RUN, statement))

    async def get_stage_by_id(self, id: str) -> WorkflowStageRecord | None:
        statement = Statement("SELECT @stage.columns FROM @workflow_stages WHERE id = $1", (id,))
        return await self._database.read(lambda: first(STAGE, statement))

    async def save_artifact(self, artifact: SaveArtifactInput) -> None:
        upsert = Statement(
            """
            INSERT INTO @workflow_artifacts (
                id, "createdAt", "updatedAt", "workflowRunId", "workflowStageId", key, type, data, size, metadata
            )
            SELECT
                $1::text, $2::text::timestamp, $2::text::timestamp, $3::text, $4::text, $5::text, $6::text,
                $7::text::jsonb, $8::int, $9::text::jsonb
            WHERE EXISTS (SELECT 1 FROM @workflow_runs WHERE id = $3::text FOR KEY SHARE)
              AND ($4::text IS NULL OR EXISTS (SELECT 1 FROM @workflow_stages WHERE id = $4::text FOR KEY SHARE))
            ON CONFLICT ("workflowRunId", key) DO UPDATE
            SET "updatedAt" = excluded."updatedAt", "workflowStageId" = excluded."workflowStageId",
                type = excluded.type, data = excluded.data, size = excluded.size, metadata = excluded.metadata
            RETURNING id
            """,
            (
                new_id(),
                self._database.now(),
                artifact.workflow_run_id,
                artifact.workflow_stage_id,
                artifact.key,
                artifact.type,
                json_argument(artifact.data, required=True),
                artifact.stored_size,
                json_argument(artifact.metadata),
            ),
        )
        stages = [artifact.workflow_stage_id] if artifact.workflow_stage_id is not None else []
        await self._database.write(
            lambda: insert_under_parents(upsert, [artifact.workflow_run_id], stages), single=True
        )

    async def get_artifact(self, run_id: str, key: str) -> WorkflowArtifactRecord | None:
        statement = Statement(
            'SELECT @artifact.columns FROM @workflow_artifacts WHERE "workflowRunId" = $1 AND key = $2', (run_id, key)
        )
        return await self._database.read(lambda: first(ARTIFACT, statement))

    async def delete_artifact(self, run_id: str, key: str) -> None:
        statement = Statement('DELETE FROM @workflow_artifacts WHERE "workflowRunId" = $1 AND key = $2', (run_id, key))
        await self._database.write(lambda: none(statement), single=True)

    async def list_artifacts(self, run_id: str) -> list[WorkflowArtifactRecord]:
        statement = Statement(
            """
            SELECT @artifact.columns
            FROM @workflow_artifacts
            WHERE "workflowRunId" = $1
            ORDER BY key COLLATE "C"
            """,
            (run_id,),
        )
        return await self._database.read(lambda: every(ARTIFACT, statement))
