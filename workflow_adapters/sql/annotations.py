"""workflow_annotations."""

from __future__ import annotations

from collections.abc import Sequence

from workflow_adapters.arguments import enforces
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.annotations import AnnotationFilters, CreateAnnotationInput
from workflow_adapters.ports.annotations import Annotations
from workflow_adapters.records.annotations import WorkflowAnnotationRecord
from workflow_adapters.sql.columns import json_argument
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.dialect import Values
from workflow_adapters.sql.results import every, require_parents
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sql.tables import ANNOTATION
from workflow_adapters.unset import UNSET


@enforces(Annotations)
class SqlAnnotations(SqlPort):
    async def append_annotations(self, annotations: Sequence[CreateAnnotationInput]) -> None:
        if not annotations:
            return
        runs = list(dict.fromkeys(a.workflow_run_id for a in annotations))
        stages = list(
            dict.fromkeys(a.workflow_stage_record_id for a in annotations if a.workflow_stage_record_id is not None)
        )
        insert = self._database.dialect.append_annotations(
            self._database.now(), [_values(annotation) for annotation in annotations], runs, stages
        )

        def operation() -> Operation[None]:
            # No row at all: every one of them was stored before, or a parent was missing (and may be there by now).
            if not (yield insert):
                yield from require_parents(runs, stages)
                yield insert

        await self._database.write(operation, single=True)

    async def list_annotations(
        self, run_id: str, filters: AnnotationFilters | None = None
    ) -> list[WorkflowAnnotationRecord]:
        wanted = filters or AnnotationFilters()
        where = Conditions(first=2)
        where.compare(ANNOTATION["key"], "=", wanted.key)
        where.starts_with(ANNOTATION["key"], wanted.key_prefix if wanted.key is UNSET else UNSET)
        where.compare(ANNOTATION["scope"], "=", wanted.scope)
        where.compare(ANNOTATION["scope_id"], "=", wanted.scope_id)
        where.compare(ANNOTATION["actor_id"], "=", wanted.actor_id)
        where.compare(ANNOTATION["actor_kind"], "=", wanted.actor_kind)
        where.compare(ANNOTATION["attempt"], "=", wanted.attempt)
        where.compare(ANNOTATION["created_at"], ">=", wanted.since)
        where.compare(ANNOTATION["created_at"], "<=", wanted.until)
        statement = Statement(
            f"""
            SELECT @annotation.columns
            FROM @workflow_annotations
            WHERE "workflowRunId" = $1{where.text}
            ORDER BY "createdAt", id COLLATE "C"
            LIMIT {where.next_placeholder}::int
            """,
            (run_id, *where.args, wanted.limit),
        )
        return await self._database.read(lambda: every(ANNOTATION, statement))


def _values(annotation: CreateAnnotationInput) -> Values:
    return (
        new_id(),
        annotation.workflow_run_id,
        annotation.workflow_stage_record_id,
        annotation.attempt,
        annotation.scope,
        annotation.scope_id,
        annotation.actor.kind,
        annotation.actor.id,
        annotation.actor.version,
        annotation.key,
        json_argument(annotation.value, required=True),
        json_argument(annotation.payload),
        annotation.idempotency_key,
    )
