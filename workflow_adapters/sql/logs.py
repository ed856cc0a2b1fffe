"""workflow_logs."""

from __future__ import annotations

from workflow_adapters.arguments import enforces
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.ports.logs import Logs
from workflow_adapters.sql.columns import json_argument
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.results import insert_under_parents
from workflow_adapters.sql.statement import Statement


@enforces(Logs)
class SqlLogs(SqlPort):
    async def create_log(self, log: CreateLogInput) -> None:
        insert = Statement(
            """
            INSERT INTO @workflow_logs (
                id, "createdAt", "workflowRunId", "workflowStageId", level, message, metadata
            )
            SELECT $1::text, $2::text::timestamp, $3::text, $4::text, $5::text, $6::text, $7::text::jsonb
            WHERE ($3::text IS NULL OR EXISTS (SELECT 1 FROM @workflow_runs WHERE id = $3::text FOR KEY SHARE))
              AND ($4::text IS NULL OR EXISTS (SELECT 1 FROM @workflow_stages WHERE id = $4::text FOR KEY SHARE))
            RETURNING id
            """,
            (
                new_id(),
                self._database.now(),
                log.workflow_run_id,
                log.workflow_stage_id,
                log.level,
                log.message,
                json_argument(log.metadata),
            ),
        )
        runs = [log.workflow_run_id] if log.workflow_run_id is not None else []
        stages = [log.workflow_stage_id] if log.workflow_stage_id is not None else []
        await self._database.write(lambda: insert_under_parents(insert, runs, stages), single=True)
