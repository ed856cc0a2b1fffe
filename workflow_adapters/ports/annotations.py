"""Contract of workflow_annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.annotations import AnnotationFilters, CreateAnnotationInput
from workflow_adapters.records.annotations import WorkflowAnnotationRecord
from workflow_adapters.validation import instance, key, optional, sequence


class Annotations(Protocol):
    """Facts attached to runs."""

    @checked(annotations=sequence(instance(CreateAnnotationInput)))
    async def append_annotations(self, annotations: Sequence[CreateAnnotationInput]) -> None:
        """Store a batch, all or nothing. Empty: no-op. An unknown run or stage: NotFoundError, nothing stored.

        Of rows sharing (workflow_run_id, key, idempotency_key) with a non-null idempotency_key the first wins, against
        stored rows and inside the batch; the others are skipped silently. Null keys never collide.
        """
        ...

    @checked(run_id=key, filters=optional(instance(AnnotationFilters)))
    async def list_annotations(
        self, run_id: str, filters: AnnotationFilters | None = None
    ) -> list[WorkflowAnnotationRecord]:
        """Annotations of the run that pass all filters, by created_at, then insertion order, at most filters.limit."""
        ...
