"""Rows of workflow_artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from workflow_adapters.json_values import JsonValue
from workflow_adapters.records.status import ArtifactType


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowArtifactRecord:
    """A named piece of data of a run. `size` is in bytes."""

    id: str
    created_at: datetime
    updated_at: datetime
    workflow_run_id: str
    workflow_stage_id: str | None
    key: str
    type: ArtifactType
    data: JsonValue
    size: int
    metadata: JsonValue


class Missing(Enum):
    """Type of `MISSING`."""

    MISSING = "MISSING"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
