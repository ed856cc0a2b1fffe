"""The statements that are SQLite's own.

`workflow_adapters.postgres.dialect` has the same statements in the same order, so that the two can be compared. A
statement names its index where SQLite, which has no statistics here, would take another and sort.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.records.status import Status
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.dialect import Values
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.sqlite.ai_call_sums import sum_in_pages
from workflow_adapters.sqlite.operations import SqliteOperationStatements


class SqliteDialect(SqliteOperationStatements):
    """Lists as JSON text that json_each takes apart; no locks, because a write transaction holds the file."""

    def __init__(self, *, own_functions: bool) -> None:
        """`own_functions` says that the connection has the functions of `workflow_adapters.sqlite.functions`."""
        self._own_functions = own_functions

    def claim_next_pending_run(self, now: datetime, serves: Sequence[ServedDefinition] | None) -> Statement:
        if serves is not None:
            return _claim_served_run(now, serves)
        return Statement(
            """
            UPDATE @workflow_runs
            SET status = 'RUNNING', "startedAt" = $1, "updatedAt" = $1, version = version + 1
            WHERE status = 'PENDING'
              AND id = (
                  SELECT id
                  FROM @workflow_runs INDEXED BY wa_runs_pending
                  WHERE status = 'PENDING'
                  ORDER BY priority DESC, "createdAt", id
                  LIMIT 1
              )
            RETURNING @run.columns
            """,
            (now,),
        )

    def list_runs_for_purge(self, cutoff: datetime, statuses: Sequence[Status], limit: int) -> Statement:
        return Statement(
            """
            WITH purgeable AS (
                SELECT id, "workflowType", status, coalesce("completedAt", "updatedAt") AS finished
                FROM @workflow_runs INDEXED BY wa_runs_finished
                WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND status = ANY($3::text[])
                  AND coalesce("completedAt", "updatedAt") <= $1
                ORDER BY coalesce("completedAt", "updatedAt"), id
                LIMIT $2
            )
            SELECT p.id, p."workflowType", p.status, s.id
            FROM purgeable p
            LEFT JOIN @workflow_stages s ON s."workflowRunId" = p.id
            ORDER BY p.finished, p.id, s."executionGroup", s."stageNumber", s.id
            """,
            (cutoff, limit, statuses),
        )

    def get_suspended_stages(self, before: datetime, limit: int, serves: Sequence[ServedDefinition]) -> Statement:
        return Statement(
            """
            WITH served (workflow_id, version) AS MATERIALIZED (
                SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each($3)
            )
            SELECT @stage.columns(s)
            FROM @workflow_stages s INDEXED BY wa_stages_suspended
            CROSS JOIN @workflow_runs r ON r.id = s."workflowRunId"
            WHERE s.status = 'SUSPENDED' AND s."nextPollAt" <= $1
              AND (
                  (r."definitionVersion" IS NULL AND r."workflowId" IN (SELECT workflow_id FROM served))
                  OR (r."workflowId", r."definitionVersion") IN (SELECT workflow_id, version FROM served)
              )
            ORDER BY s."nextPollAt", s.id
            LIMIT $2
            """,
            (before, limit, _pairs(serves)),
        )

    def append_annotations(
        self, now: datetime, rows: Sequence[Values], run_ids: Sequence[str], stage_ids: Sequence[str]
    ) -> Statement:
        return Statement(
            """
            INSERT INTO @workflow_annotations (
                id, "createdAt", "workflowRunId", "workflowStageRecordId", attempt, scope, "scopeId", "actorKind",
                "actorId", "actorVersion", key, value, payload, "idempotencyKey"
            )
            SELECT
                json_extract(a.value, '$[0]'), $1, json_extract(a.value, '$[1]'), json_extract(a.value, '$[2]'),
                json_extract(a.value, '$[3]'), json_extract(a.value, '$[4]'), json_extract(a.value, '$[5]'),
                json_extract(a.value, '$[6]'), json_extract(a.value, '$[7]'), json_extract(a.value, '$[8]'),
                json_extract(a.value, '$[9]'), json_extract(a.value, '$[10]'), json_extract(a.value, '$[11]'),
                json_extract(a.value, '$[12]')
            FROM json_each($2) AS a
            WHERE (SELECT count(*) FROM @workflow_runs WHERE id IN (SELECT value FROM json_each($3)))
                  = json_array_length($3)
              AND (SELECT count(*) FROM @workflow_stages WHERE id IN (SELECT value FROM json_each($4)))
                  = json_array_length($4)
            ORDER BY a.key
            ON CONFLICT DO NOTHING
            RETURNING id
            """,
            (now, json.dumps(rows, ensure_ascii=False), run_ids, stage_ids),
        )

    def insert_ai_calls(self, rows: Sequence[Values], *, call_costs: bool) -> Sequence[Statement]:
        # A statement per row binds doubles as they are; SQLite reads those inside JSON less exactly.
        return [
            Statement(
                """
                INSERT INTO @ai_calls (
                    id, "createdAt", topic, "callType", "modelKey", "modelId", prompt, response, "inputTokens",
                    "outputTokens", cost, "estimatedCost", "reportedCost", "costSource", "servedBy",
                    "cachedInputTokens", "reasoningTokens", "batchId", "requestId", metadata
                )
                VALUES (
                    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20
                )
                ON CONFLICT DO NOTHING
                """,
                row,
            )
            for row in rows
        ]

    def is_recorded(self, batch_id: str) -> Statement:
        return Statement(
            """
            SELECT 1 FROM @ai_calls WHERE "batchId" = $1
            UNION ALL
            SELECT 1 FROM @ai_calls INDEXED BY wa_calls_batch
            WHERE "batchId" IS NULL AND metadata IS NOT NULL AND json_extract(metadata, '$.batchId') = $1
              AND json_type(metadata, '$.batchId') = 'text'
            LIMIT 1
            """,
            (batch_id,),
        )

    def sum_ai_calls(self, where: Conditions) -> Operation[Sequence[Row]]:
        if not self._own_functions:
            return (yield from sum_in_pages(where))
        return (
            yield Statement(
                f"""
                SELECT "modelKey", count(*), sum("inputTokens"), sum("outputTokens"), wa_exact_sum(cost)
                FROM @ai_calls
                WHERE true{where.text}
                GROUP BY "modelKey"
                ORDER BY "modelKey"
                """,
                tuple(where.args),
            )
        )


def _claim_served_run(now: datetime, serves: Sequence[ServedDefinition]) -> Statement:
    return Statement(
        """
        WITH served (workflow_id, version) AS MATERIALIZED (
            SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each($2)
        )
        UPDATE @workflow_runs
        SET status = 'RUNNING', "startedAt" = $1, "updatedAt" = $1, version = version + 1
        WHERE status = 'PENDING'
          AND id = (
              SELECT id
              FROM @workflow_runs INDEXED BY wa_runs_pending
              WHERE status = 'PENDING'
                AND (
                    ("definitionVersion" IS NULL AND "workflowId" IN (SELECT workflow_id FROM served))
                    OR ("workflowId", "definitionVersion") IN (SELECT workflow_id, version FROM served)
                )
              ORDER BY priority DESC, "createdAt", id
              LIMIT 1
          )
        RETURNING @run.columns
        """,
        (now, _pairs(serves)),
    )


def _pairs(serves: Sequence[ServedDefinition]) -> str:
    return json.dumps([(served.workflow_id, served.version) for served in serves], ensure_ascii=False)
