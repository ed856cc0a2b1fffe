"""Contract of workflow_definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.definitions import CreateDefinitionInput
from workflow_adapters.records.definitions import DefinitionVersionCount, WorkflowDefinitionRecord
from workflow_adapters.records.status import Status
from workflow_adapters.validation import instance, key, member, optional, sequence


class Definitions(Protocol):
    """Definition versions. On a schema without their table every method answers False, None or []."""

    def supports_definition_versioning(self) -> bool:
        """What is known so far of the schema; `ensure_definition_versioning_detected` makes sure. Synchronous."""
        ...

    async def ensure_definition_versioning_detected(self) -> bool:
        """Ask the live schema once, by a catalogue read that cannot fail inside the caller's transaction."""
        ...

    @checked(definition=instance(CreateDefinitionInput))
    async def insert_definition_if_absent(self, definition: CreateDefinitionInput) -> WorkflowDefinitionRecord | None:
        """Register (workflow_id, version); a second registration returns the stored row unchanged."""
        ...

    @checked(workflow_id=key, version=key)
    async def get_definition(self, workflow_id: str, version: str) -> WorkflowDefinitionRecord | None:
        """The registered version, or None."""
        ...

    @checked(workflow_id=optional(key), definition_version=optional(key), status=optional(sequence(member(Status))))
    async def count_runs_by_definition_version(
        self,
        workflow_id: str | None = None,
        definition_version: str | None = None,
        status: Sequence[Status] | None = None,
    ) -> list[DefinitionVersionCount]:
        """Runs per (workflow, definition version, status), in that order, unpinned runs first.

        None is no filter; an empty `status` sequence matches nothing.
        """
        ...
