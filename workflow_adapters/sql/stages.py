"""workflow_stages."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import AlreadyExistsError, NotFoundError
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.inputs.stages import CreateStageInput, UpdateStageInput, UpsertStageInput
from workflow_adapters.ports.stages import Order, Stages
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status
from workflow_adapters.sql.columns import json_argument
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.mapping import set_list
from workflow_adapters.sql.results import ATTEMPTS, every, first, given, lost_race, versioned_update
from workflow_adapters.sql.statement import Argument, Operation, Statement
from workflow_adapters.sql.tables import STAGE
from workflow_adapters.unset import UNSET, Unset
from workflow_adapters.validation import INT32_MAX, check_version

_CREATE_ARGUMENTS: Final = 12


@enforces(Stages)
class SqlStages(SqlPort):
    async def create_stage(self, stage: CreateStageInput) -> WorkflowStageRecord:
        insert = Statement(
            """
            INSERT INTO @workflow_stages (
                id, "createdAt", "updatedAt", version, "workflowRunId", "stageId", "stageName", "stageNumber",
                "executionGroup", attempt, status, "startedAt", config, "inputData"
            )
            SELECT
                $1, $2::text::timestamp, $2::text::timestamp, 1, r.id, $4, $5, $6::int,
                $7::int, $8::int, $9::text::@Status, $10::text::timestamp, $11::text::jsonb, $12::text::jsonb
            FROM @workflow_runs r
            WHERE r.id = $3
            FOR KEY SHARE
            ON CONFLICT ("workflowRunId", "stageId") DO NOTHING
            RETURNING @stage.columns
            """,
            _create_arguments(stage, self._database.now(), Status.PENDING, None),
        )
        pair = f"{stage.workflow_run_id}/{stage.stage_id}"

        def operation() -> Operation[WorkflowStageRecord]:
            for _ in range(ATTEMPTS):
                if rows := (yield insert):
                    return STAGE.read(rows[0])
                if (yield from _version_of_pair(stage.workflow_run_id, stage.stage_id)) is not None:
                    raise AlreadyExistsError("stage", pair)
            raise lost_race(f"the stage {pair!r}")

        return await self._database.write(operation, single=True)

    async def upsert_stage(self, stage: UpsertStageInput) -> WorkflowStageRecord:
        create, update, now = stage.create, stage.update, self._database.now()
        sets = set_list(STAGE, update, first=_CREATE_ARGUMENTS + 2)
        upsert = Statement(
            f"""
            INSERT INTO @workflow_stages AS stored (
                id, "createdAt", "updatedAt", version, "workflowRunId", "stageId", "stageName", "stageNumber",
                "executionGroup", attempt, status, "startedAt", config, "inputData"
            )
            SELECT
                $1, $2::text::timestamp, $2::text::timestamp, 1, r.id, $4, $5, $6::int,
                $7::int, $8::int, $9::text::@Status, $10::text::timestamp, $11::text::jsonb, $12::text::jsonb
            FROM @workflow_runs r
            WHERE r.id = $3
            FOR KEY SHARE
            ON CONFLICT ("workflowRunId", "stageId") DO UPDATE
            SET version = stored.version + 1, "updatedAt" = $2::text::timestamp{sets.text}
            WHERE $13::int IS NULL OR stored.version = $13::int
            RETURNING @stage.columns
            """,
            (
                *_create_arguments(create, now, Status.RUNNING, now),
                given(update.expected_version),
                *sets.args,
            ),
        )
        pair = f"{create.workflow_run_id}/{create.stage_id}"

        def operation() -> Operation[WorkflowStageRecord]:
            for _ in range(ATTEMPTS):
                if rows := (yield upsert):
                    return STAGE.read(rows[0])
                found = yield from _version_of_pair(create.workflow_run_id, create.stage_id)
                if found is not None:
                    check_version("stage", found[0], update.expected_version, found[1])
            raise lost_race(f"the stage {pair!r}")

        return await self._database.write(operation, single=True)

    async def update_stage(self, id: str, patch: UpdateStageInput) -> None:
        sets = set_list(STAGE, patch, first=4)
        update = Statement(
            f"""
            UPDATE @workflow_stages
            SET version = version + 1, "updatedAt" = $2::text::timestamp{sets.text}
            WHERE id = $1 AND ($3::int IS NULL OR version = $3::int)
            RETURNING version
            """,
            (id, self._database.now(), given(patch.expected_version), *sets.args),
        )
        version = Statement("SELECT version FROM @workflow_stages WHERE id = $1", (id,))
        await self._database.write(
            lambda: versioned_update("stage", id, patch.expected_version, update, version), single=True
        )

    async def get_stage(self, run_id: str, stage_id: str) -> WorkflowStageRecord | None:
        statement = Statement(
            'SELECT @stage.columns FROM @workflow_stages WHERE "workflowRunId" = $1 AND "stageId" = $2',
            (run_id, stage_id),
        )
        return await self._database.read(lambda: first(STAGE, statement))

    async def get_stages_by_run(
        self, run_id: str, status: Status | None = None, order: Order = "asc"
    ) -> list[WorkflowStageRecord]:
        where = Conditions(first=2)
        where.compare(STAGE["status"], "=", status or UNSET)
        direction = "ASC" if order == "asc" else "DESC"
        statement = Statement(
            f"""
            SELECT @stage.columns
            FROM @workflow_stages
            WHERE "workflowRunId" = $1{where.text}
            ORDER BY "executionGroup" {direction}, "stageNumber" {direction}, id COLLATE "C" {direction}
            """,
            (run_id, *where.args),
        )
        return await self._database.read(lambda: every(STAGE, statement))

    async def get_suspended_stages(
        self, before: datetime, limit: int | None = None, serves: Serves = None
    ) -> list[WorkflowStageRecord]:
        at_most = INT32_MAX if limit is None else limit
        if serves is None or serves == "all" or not (await self._database.facts()).definition_versions:
            statement = Statement(
                """
                SELECT @stage.columns
                FROM @workflow_stages
                WHERE status = 'SUSPENDED' AND "nextPollAt" <= $1::text::timestamp
                ORDER BY "nextPollAt", id COLLATE "C"
                LIMIT $2::int
                """,
                (before, at_most),
            )
        else:
            statement = self._database.dialect.get_suspended_stages(before, at_most, serves)
        return await self._database.read(lambda: every(STAGE, statement))

    async def delete_stage(self, id: str) -> None:
        def operation() -> Operation[None]:
            yield Statement("DELETE FROM @workflow_stages WHERE id = $1", (id,))
            # Databases from before the foreign key of steps do not cascade to them.
            yield Statement('DELETE FROM @workflow_steps WHERE "stageRecordId" = $1', (id,))

        await self._database.write(operation)


def _create_arguments(
    stage: CreateStageInput, now: datetime, status: Status, started_at: datetime | None
) -> tuple[Argument, ...]:
    return (
        new_id(),
        now,
        stage.workflow_run_id,
        stage.stage_id,
        stage.stage_name,
        stage.stage_number,
        stage.execution_group,
        stage.attempt,
        status if isinstance(stage.status, Unset) else stage.status,
        started_at if isinstance(stage.started_at, Unset) else stage.started_at,
        json_argument(stage.config),
        json_argument(stage.input_data),
    )


def _version_of_pair(run_id: str, stage_id: str) -> Operation[tuple[str, int] | None]:
    """Id and version of the run's stage, or None; NotFoundError for an unknown run."""
    rows = yield Statement(
        """
        SELECT s.id, s.version
        FROM @workflow_runs r
        LEFT JOIN @workflow_stages s ON s."workflowRunId" = r.id AND s."stageId" = $2
        WHERE r.id = $1
        """,
        (run_id, stage_id),
    )
    if not rows:
        raise NotFoundError("run", run_id)
    found, version = rows[0]
    return None if found is None else (str(found), int(version or 0))
