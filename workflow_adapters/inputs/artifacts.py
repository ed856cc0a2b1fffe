"""Inputs for workflow_artifacts."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_adapters.json_values import JsonValue, dumps, json_value
from workflow_adapters.records.status import ArtifactType
from workflow_adapters.validation import key, member, non_negative, normalise, optional


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveArtifactInput:
    """An artifact to store under (run, key). `size` defaults to the bytes of the JSON in UTF-8."""

    workflow_run_id: str
    key: str
    type: ArtifactType
    data: JsonValue
    size: int | None = None
    workflow_stage_id: str | None = None
    metadata: JsonValue = None

    def __post_init__(self) -> None:
        normalise(
            self,
            workflow_run_id=key,
            key=key,
            type=member(ArtifactType),
            data=json_value,
            size=optional(non_negative),
            workflow_stage_id=optional(key),
            metadata=json_value,
        )

    @property
    def stored_size(self) -> int:
        return self.size if self.size is not None else len(dumps(self.data).encode())
