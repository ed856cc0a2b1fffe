"""Rows of workflow_definitions, and how many runs are pinned to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflow_adapters.json_values import JsonValue
from workflow_adapters.records.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDefinitionRecord:
    """A registered definition version."""

    workflow_id: str
    version: str
    created_at: datetime
    snapshot: JsonValue
    structure_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionVersionCount:
    """Runs of one (workflow, definition version, status); `definition_version` None counts unpinned runs."""

    workflow_id: str
    definition_version: str | None
    status: Status
    count: int
    oldest_created_at: datetime
