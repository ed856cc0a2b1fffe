"""workflow_definitions, and the runs pinned to them."""

from __future__ import annotations

from collections.abc import Sequence

from anyio.lowlevel import checkpoint

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.definitions import CreateDefinitionInput
from workflow_adapters.ports.definitions import Definitions
from workflow_adapters.records.definitions import DefinitionVersionCount, WorkflowDefinitionRecord
from workflow_adapters.records.status import Status
from workflow_adapters.sql.columns import json_argument, ms_to_instant
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.results import ATTEMPTS, first, lost_race
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sql.tables import DEFINITION, RUN
from workflow_adapters.unset import UNSET


@enforces(Definitions)
class SqlDefinitions(SqlPort):
    def supports_definition_versioning(self) -> bool:
        return self._database.known_facts.definition_versions

    async def ensure_definition_versioning_detected(self) -> bool:
        # The answer may be known without I/O, and a call that never suspends can not be cancelled.
        await checkpoint()
        return (await self._database.facts()).definition_versions

    async def insert_definition_if_absent(self, definition: CreateDefinitionInput) -> WorkflowDefinitionRecord | None:
        if not await self.ensure_definition_versioning_detected():
            return None
        insert = Statement(
            """
            INSERT INTO @workflow_definitions ("workflowId", version, "createdAt", snapshot, "structureHash")
            VALUES ($1, $2, $3::text::timestamp, $4::text::jsonb, $5)
            ON CONFLICT ("workflowId", version) DO NOTHING
            RETURNING @definition.columns
            """,
            (
                definition.workflow_id,
                definition.version,
                self._database.now(),
                json_argument(definition.snapshot, required=True),
                definition.structure_hash,
            ),
        )
        read = _definition(definition.workflow_id, definition.version)

        def operation() -> Operation[WorkflowDefinitionRecord]:
            for _ in range(ATTEMPTS):
                rows = (yield insert) or (yield read)
                if rows:
                    return DEFINITION.read(rows[0])
            raise lost_race(f"the definition {definition.workflow_id!r} {definition.version!r}")

        return await self._database.write(operation, single=True)

    async def get_definition(self, workflow_id: str, version: str) -> WorkflowDefinitionRecord | None:
        if not await self.ensure_definition_versioning_detected():
            return None
        return await self._database.read(lambda: first(DEFINITION, _definition(workflow_id, version)))

    async def count_runs_by_definition_version(
        self,
        workflow_id: str | None = None,
        definition_version: str | None = None,
        status: Sequence[Status] | None = None,
    ) -> list[DefinitionVersionCount]:
        if not await self.ensure_definition_versioning_detected():
            return []
        where = Conditions(first=2)
        where.compare(RUN["workflow_id"], "=", workflow_id or UNSET)
        where.compare(RUN["definition_version"], "=", definition_version or UNSET)
        statement = Statement(
            f"""
            SELECT "workflowId", "definitionVersion", status::text, count(*), @ms(min("createdAt"))
            FROM @workflow_runs
            WHERE status = ANY($1::text[]::@Status[]){where.text}
            GROUP BY "workflowId", "definitionVersion", status
            ORDER BY "workflowId" COLLATE "C", "definitionVersion" COLLATE "C" NULLS FIRST, status::text COLLATE "C"
            """,
            (list(Status if status is None else status), *where.args),
        )
        return await self._database.read(lambda: _counts(statement))


def _definition(workflow_id: str, version: str) -> Statement:
    return Statement(
        'SELECT @definition.columns FROM @workflow_definitions WHERE "workflowId" = $1 AND version = $2',
        (workflow_id, version),
    )


def _counts(statement: Statement) -> Operation[list[DefinitionVersionCount]]:
    rows = yield statement
    return [
        DefinitionVersionCount(
            workflow_id=str(workflow_id),
            definition_version=None if version is None else str(version),
            status=Status(status),
            count=int(count or 0),
            oldest_created_at=ms_to_instant(int(oldest or 0)),
        )
        for workflow_id, version, status, count, oldest in rows
    ]
