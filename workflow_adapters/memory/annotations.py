"""workflow_annotations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from workflow_adapters.arguments import enforces
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.annotations import AnnotationFilters, CreateAnnotationInput
from workflow_adapters.memory.adapter import MemoryAdapter, require_run, require_stage
from workflow_adapters.memory.rows import copied, detached
from workflow_adapters.ports.annotations import Annotations
from workflow_adapters.records.annotations import WorkflowAnnotationRecord
from workflow_adapters.unset import UNSET, Unset


@enforces(Annotations)
class MemoryAnnotations(MemoryAdapter):
    async def append_annotations(self, annotations: Sequence[CreateAnnotationInput]) -> None:
        async with self._session.write() as tables:
            for annotation in annotations:
                require_run(tables, annotation.workflow_run_id)
            for annotation in annotations:
                require_stage(tables, annotation.workflow_stage_record_id)
            now = self._session.now()
            for annotation in annotations:
                same = (annotation.workflow_run_id, annotation.key, annotation.idempotency_key)
                if annotation.idempotency_key is None or tables.annotations.by_idempotency_key.get(same) is None:
                    tables.annotations.put(_new_annotation(annotation, now))

    async def list_annotations(
        self, run_id: str, filters: AnnotationFilters | None = None
    ) -> list[WorkflowAnnotationRecord]:
        wanted = filters or AnnotationFilters()
        async with self._session.read() as tables:
            found = (
                annotation for annotation in tables.annotations.by_run.iterate(run_id) if _passes(annotation, wanted)
            )
            return [detached(annotation) for annotation in islice(found, wanted.limit)]


def _passes(annotation: WorkflowAnnotationRecord, wanted: AnnotationFilters) -> bool:
    return (
        _has_key(annotation.key, wanted)
        and wanted.scope in (UNSET, annotation.scope)
        and wanted.scope_id in (UNSET, annotation.scope_id)
        and wanted.actor_id in (UNSET, annotation.actor_id)
        and wanted.actor_kind in (UNSET, annotation.actor_kind)
        and wanted.attempt in (UNSET, annotation.attempt)
        and (not isinstance(wanted.since, datetime) or wanted.since <= annotation.created_at)
        and (not isinstance(wanted.until, datetime) or annotation.created_at <= wanted.until)
    )


def _has_key(key: str, wanted: AnnotationFilters) -> bool:
    if not isinstance(wanted.key, Unset):
        return key == wanted.key
    return not isinstance(wanted.key_prefix, str) or key.startswith(wanted.key_prefix)


def _new_annotation(annotation: CreateAnnotationInput, now: datetime) -> WorkflowAnnotationRecord:
    return WorkflowAnnotationRecord(
        id=new_id(),
        created_at=now,
        workflow_run_id=annotation.workflow_run_id,
        workflow_stage_record_id=annotation.workflow_stage_record_id,
        attempt=annotation.attempt,
        scope=annotation.scope,
        scope_id=annotation.scope_id,
        actor_kind=annotation.actor.kind,
        actor_id=annotation.actor.id,
        actor_version=annotation.actor.version,
        key=annotation.key,
        value=copied(annotation.value),
        payload=copied(annotation.payload),
        idempotency_key=annotation.idempotency_key,
    )
