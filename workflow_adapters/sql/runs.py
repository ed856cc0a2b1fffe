"""workflow_runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import AlreadyExistsError
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.runs import CreateRunInput, ServedDefinition, Serves, UpdateRunInput
from workflow_adapters.ports.runs import Runs
from workflow_adapters.records.runs import PurgeableRun, WorkflowRunRecord
from workflow_adapters.records.status import Status
from workflow_adapters.sql.columns import json_argument
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.mapping import set_list
from workflow_adapters.sql.results import every, first, given, versioned_update
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.sql.tables import RUN

_VERSIONING_FIELDS: Final = ("definition_version", "redrive_count")


@enforces(Runs)
class SqlRuns(SqlPort):
    async def create_run(self, run: CreateRunInput) -> WorkflowRunRecord:
        facts = await self._database.facts()
        run_id = run.id or new_id()
        statement = _insert_run if facts.definition_versions else _insert_unversioned_run
        insert = statement(run_id, run, self._database.now())

        def operation() -> Operation[WorkflowRunRecord]:
            rows = yield insert
            if not rows:
                raise AlreadyExistsError("run", run_id)
            return RUN.read(rows[0])

        return await self._database.write(operation, single=True)

    async def update_run(self, id: str, patch: UpdateRunInput) -> None:
        facts = await self._database.facts()
        sets = set_list(RUN, patch, first=4, absent=() if facts.definition_versions else _VERSIONING_FIELDS)
        update = Statement(
            f"""
            UPDATE @workflow_runs
            SET version = version + 1, "updatedAt" = $2::text::timestamp{sets.text}
            WHERE id = $1 AND ($3::int IS NULL OR version = $3::int)
            RETURNING version
            """,
            (id, self._database.now(), given(patch.expected_version), *sets.args),
        )
        version = Statement("SELECT version FROM @workflow_runs WHERE id = $1", (id,))
        await self._database.write(
            lambda: versioned_update("run", id, patch.expected_version, update, version), single=True
        )

    async def get_run(self, id: str) -> WorkflowRunRecord | None:
        statement = Statement("SELECT @run.columns FROM @workflow_runs WHERE id = $1", (id,))
        return await self._database.read(lambda: first(RUN, statement))

    async def get_run_status(self, id: str) -> Status | None:
        def operation() -> Operation[Status | None]:
            rows = yield Statement("SELECT status::text FROM @workflow_runs WHERE id = $1", (id,))
            return Status(rows[0][0]) if rows else None

        return await self._database.read(operation)

    async def get_stuck_runs(self, stuck_since: datetime) -> list[WorkflowRunRecord]:
        statement = Statement(
            """
            SELECT @run.columns(r)
            FROM @workflow_runs r
            WHERE r.status = 'RUNNING'
              AND r."updatedAt" <= $1::text::timestamp
              AND NOT EXISTS (
                  SELECT 1 FROM @workflow_stages s
                  WHERE s."workflowRunId" = r.id AND s."updatedAt" > $1::text::timestamp
              )
            ORDER BY r."updatedAt", r.id COLLATE "C"
            """,
            (stuck_since,),
        )
        return await self._database.read(lambda: every(RUN, statement))

    async def claim_next_pending_run(
        self, now: datetime | None = None, serves: Serves = None
    ) -> WorkflowRunRecord | None:
        served = await self._served(serves)
        if served == ():
            return None
        statement = self._database.dialect.claim_next_pending_run(now or self._database.now(), served)
        return await self._database.write(lambda: first(RUN, statement), single=True)

    async def _served(self, serves: Serves) -> Sequence[ServedDefinition] | None:
        """The checked `serves`; None, for anything, where runs have no definition version."""
        if serves is None or serves == "all":
            return None
        facts = await self._database.facts()
        return serves if facts.definition_versions else None

    async def list_runs_for_purge(self, cutoff: datetime, statuses: Sequence[Status], limit: int) -> list[PurgeableRun]:
        statement = self._database.dialect.list_runs_for_purge(cutoff, statuses, limit)
        return await self._database.read(lambda: _purgeable_runs(statement))

    async def delete_run(self, id: str) -> None:
        def operation() -> Operation[None]:
            # Steps first: databases from before their foreign key do not cascade to them.
            yield Statement('SELECT id FROM @workflow_stages WHERE "workflowRunId" = $1 ORDER BY id FOR UPDATE', (id,))
            yield Statement(
                """
                DELETE FROM @workflow_steps
                WHERE "stageRecordId" IN (SELECT id FROM @workflow_stages WHERE "workflowRunId" = $1)
                """,
                (id,),
            )
            yield Statement("DELETE FROM @workflow_runs WHERE id = $1", (id,))

        await self._database.write(operation)


def _insert_run(id: str, run: CreateRunInput, now: datetime) -> Statement:
    return Statement(
        """
        INSERT INTO @workflow_runs (
            id, "createdAt", "updatedAt", version, "workflowId", "workflowName", "workflowType", status, input, config,
            "totalCost", "totalTokens", priority, metadata, "definitionVersion", "redriveCount"
        )
        VALUES (
            $1, $2::text::timestamp, $2::text::timestamp, 1, $3, $4, $5, 'PENDING', $6::text::jsonb, $7::text::jsonb,
            0, 0, $8, $9::text::jsonb, $10, 0
        )
        ON CONFLICT (id) DO NOTHING
        RETURNING @run.columns
        """,
        (*_run_arguments(id, run, now), run.definition_version),
    )


def _insert_unversioned_run(id: str, run: CreateRunInput, now: datetime) -> Statement:
    return Statement(
        """
        INSERT INTO @workflow_runs (
            id, "createdAt", "updatedAt", version, "workflowId", "workflowName", "workflowType", status, input, config,
            "totalCost", "totalTokens", priority, metadata
        )
        VALUES (
            $1, $2::text::timestamp, $2::text::timestamp, 1, $3, $4, $5, 'PENDING', $6::text::jsonb, $7::text::jsonb,
            0, 0, $8, $9::text::jsonb
        )
        ON CONFLICT (id) DO NOTHING
        RETURNING @run.columns
        """,
        _run_arguments(id, run, now),
    )


def _run_arguments(id: str, run: CreateRunInput, now: datetime) -> tuple[str | int | datetime | None, ...]:
    return (
        id,
        now,
        run.workflow_id,
        run.workflow_name,
        run.workflow_type,
        json_argument(run.input, required=True),
        json_argument(run.config, required=True),
        run.priority,
        json_argument(run.metadata),
    )


def _purgeable_runs(statement: Statement) -> Operation[list[PurgeableRun]]:
    rows = yield statement
    stages: dict[str, tuple[Row, list[str]]] = {}
    for row in rows:
        ids = stages.setdefault(str(row[0]), (row, []))[1]
        if row[3] is not None:
            ids.append(str(row[3]))
    return [
        PurgeableRun(id=run_id, workflow_type=str(row[1]), status=Status(row[2]), stage_record_ids=tuple(ids))
        for run_id, (row, ids) in stages.items()
    ]
