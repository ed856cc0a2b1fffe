"""workflow_definitions, and the runs pinned to them."""

from __future__ import annotations

from collections.abc import Sequence

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.definitions import CreateDefinitionInput
from workflow_adapters.memory.adapter import MemoryAdapter
from workflow_adapters.memory.rows import copied, detached
from workflow_adapters.ports.definitions import Definitions
from workflow_adapters.records.definitions import DefinitionVersionCount, WorkflowDefinitionRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.status import Status


@enforces(Definitions)
class MemoryDefinitions(MemoryAdapter):
    def supports_definition_versioning(self) -> bool:
        return True

    async def ensure_definition_versioning_detected(self) -> bool:
        async with self._session.read():
            return True

    async def insert_definition_if_absent(self, definition: CreateDefinitionInput) -> WorkflowDefinitionRecord | None:
        async with self._session.write() as tables:
            stored = tables.definitions.get((definition.workflow_id, definition.version))
            if stored is None:
                stored = WorkflowDefinitionRecord(
                    workflow_id=definition.workflow_id,
                    version=definition.version,
                    created_at=self._session.now(),
                    snapshot=copied(definition.snapshot),
                    structure_hash=definition.structure_hash,
                )
                tables.definitions.put(stored)
            return detached(stored)

    async def get_definition(self, workflow_id: str, version: str) -> WorkflowDefinitionRecord | None:
        async with self._session.read() as tables:
            stored = tables.definitions.get((workflow_id, version))
            return None if stored is None else detached(stored)

    async def count_runs_by_definition_version(
        self,
        workflow_id: str | None = None,
        definition_version: str | None = None,
        status: Sequence[Status] | None = None,
    ) -> list[DefinitionVersionCount]:
        async with self._session.read() as tables:
            groups: dict[tuple[str, str | None, Status], list[WorkflowRunRecord]] = {}
            for run in tables.runs:
                if (
                    workflow_id in (None, run.workflow_id)
                    and definition_version in (None, run.definition_version)
                    and (status is None or run.status in status)
                ):
                    groups.setdefault((run.workflow_id, run.definition_version, run.status), []).append(run)
            # "" is no version, so it puts the unpinned runs first.
            ordered = sorted(groups.items(), key=lambda group: (group[0][0], group[0][1] or "", group[0][2]))
            return [
                DefinitionVersionCount(
                    workflow_id=workflow,
                    definition_version=version,
                    status=group_status,
                    count=len(runs),
                    oldest_created_at=min(run.created_at for run in runs),
                )
                for (workflow, version, group_status), runs in ordered
            ]
