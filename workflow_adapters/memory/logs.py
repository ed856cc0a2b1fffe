"""workflow_logs."""

from __future__ import annotations

from workflow_adapters.arguments import enforces
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.memory.adapter import MemoryAdapter, require_run, require_stage
from workflow_adapters.memory.rows import copied
from workflow_adapters.ports.logs import Logs
from workflow_adapters.records.logs import WorkflowLogRecord


@enforces(Logs)
class MemoryLogs(MemoryAdapter):
    async def create_log(self, log: CreateLogInput) -> None:
        async with self._session.write() as tables:
            require_run(tables, log.workflow_run_id)
            require_stage(tables, log.workflow_stage_id)
            record = WorkflowLogRecord(
                id=new_id(),
                created_at=self._session.now(),
                workflow_run_id=log.workflow_run_id,
                workflow_stage_id=log.workflow_stage_id,
                level=log.level,
                message=log.message,
                metadata=copied(log.metadata),
            )
            tables.logs.put(record)
