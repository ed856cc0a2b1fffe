"""The statements that are Postgres's own.

`workflow_adapters.sqlite.dialect` has the same statements in the same order, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.postgres.ai_call_rows import insert_ai_calls, insert_ai_calls_without_costs
from workflow_adapters.postgres.operations import PostgresOperationStatements
from workflow_adapters.postgres.schema.operations import FINISHED_RUN
from workflow_adapters.postgres.style import instant_text
from workflow_adapters.records.status import Status
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.dialect import Values
from workflow_adapters.sql.statement import Operation, Row, Statement


class PostgresDialect(PostgresOperationStatements):
    """Lists as arrays that unnest takes apart, and row locks that a claim passes by."""

    def claim_next_pending_run(self, now: datetime, serves: Sequence[ServedDefinition] | None) -> Statement:
        # `id = (SELECT …)` makes its choice once; under `id IN (…)` a nested loop may make it, and claim, many times.
        # NO KEY UPDATE does not mind those who hold the run as the parent of a row.
        if serves is not None:
            return _claim_served_run(now, serves)
        return Statement(
            """
            UPDATE @workflow_runs
            SET status = 'RUNNING', "startedAt" = $1::text::timestamp, "updatedAt" = $1::text::timestamp,
                version = version + 1
            WHERE id = (
                SELECT id
                FROM @workflow_runs
                WHERE status = 'PENDING'
                ORDER BY priority DESC, "createdAt", id COLLATE "C"
                LIMIT 1
                FOR NO KEY UPDATE SKIP LOCKED
            )
            RETURNING @run.columns
            """,
            (now,),
        )

    def list_runs_for_purge(self, cutoff: datetime, statuses: Sequence[Status], limit: int) -> Statement:
        return Statement(
            f"""
            WITH purgeable AS (
                SELECT id, "workflowType", status, ({FINISHED_RUN}) AS finished
                FROM @workflow_runs
                WHERE status = ANY($3::text[]::@Status[]) AND ({FINISHED_RUN}) <= $1::text::timestamp
                ORDER BY ({FINISHED_RUN}), id COLLATE "C"
                LIMIT $2::int
            )
            SELECT p.id, p."workflowType", p.status::text, s.id
            FROM purgeable p
            LEFT JOIN @workflow_stages s ON s."workflowRunId" = p.id
            ORDER BY p.finished, p.id COLLATE "C", s."executionGroup", s."stageNumber", s.id COLLATE "C"
            """,
            (cutoff, limit, statuses),
        )

    def get_suspended_stages(self, before: datetime, limit: int, serves: Sequence[ServedDefinition]) -> Statement:
        return Statement(
            """
            SELECT @stage.columns(s)
            FROM @workflow_stages s
            JOIN @workflow_runs r ON r.id = s."workflowRunId"
            WHERE s.status = 'SUSPENDED' AND s."nextPollAt" <= $1::text::timestamp
              AND (
                  (r."definitionVersion" IS NULL AND r."workflowId" = ANY($3::text[]))
                  OR (r."workflowId", r."definitionVersion") IN (SELECT * FROM unnest($3::text[], $4::text[]))
              )
            ORDER BY s."nextPollAt", s.id COLLATE "C"
            LIMIT $2::int
            """,
            (before, limit, *_pairs(serves)),
        )

    def append_annotations(
        self, now: datetime, rows: Sequence[Values], run_ids: Sequence[str], stage_ids: Sequence[str]
    ) -> Statement:
        # Rows go in sorted by their unique key, so that two batches with the same keys never deadlock.
        return Statement(
            """
            WITH runs AS MATERIALIZED (
                SELECT id FROM @workflow_runs WHERE id = ANY($2::text[]) ORDER BY id FOR KEY SHARE
            ), stages AS MATERIALIZED (
                SELECT id FROM @workflow_stages WHERE id = ANY($3::text[]) ORDER BY id FOR KEY SHARE
            )
            INSERT INTO @workflow_annotations (
                id, "createdAt", "workflowRunId", "workflowStageRecordId", attempt, scope, "scopeId", "actorKind",
                "actorId", "actorVersion", key, value, payload, "idempotencyKey"
            )
            SELECT
                a.id, $1::text::timestamp, a.run_id, a.stage_record_id, a.attempt, a.scope, a.scope_id, a.actor_kind,
                a.actor_id, a.actor_version, a.key, a.value::jsonb, a.payload::jsonb, a.idempotency_key
            FROM unnest(
                $4::text[], $5::text[], $6::text[], $7::int[], $8::text[], $9::text[], $10::text[], $11::text[],
                $12::text[], $13::text[], $14::text[], $15::text[], $16::text[]
            ) WITH ORDINALITY AS a (
                id, run_id, stage_record_id, attempt, scope, scope_id, actor_kind, actor_id,
                actor_version, key, value, payload, idempotency_key, position
            )
            WHERE (SELECT count(*) FROM runs) = cardinality($2::text[])
              AND (SELECT count(*) FROM stages) = cardinality($3::text[])
            ORDER BY a.run_id, a.key, a.idempotency_key, a.position
            ON CONFLICT DO NOTHING
            RETURNING id
            """,
            (now, run_ids, stage_ids, *_by_column(rows)),
        )

    def insert_ai_calls(self, rows: Sequence[Values], *, call_costs: bool) -> Sequence[Statement]:
        if not rows:
            return []
        insert = insert_ai_calls if call_costs else insert_ai_calls_without_costs
        return [insert(_by_column(rows))]

    def is_recorded(self, batch_id: str) -> Statement:
        return Statement(
            """
            SELECT 1 FROM @ai_calls WHERE "batchId" = $1::text
            UNION ALL
            SELECT 1 FROM @ai_calls
            WHERE "batchId" IS NULL AND metadata->>'batchId' = $1::text
              AND jsonb_typeof(metadata->'batchId') = 'string'
            LIMIT 1
            """,
            (batch_id,),
        )

    def sum_ai_calls(self, where: Conditions) -> Operation[Sequence[Row]]:
        # A plain cast from double to numeric keeps 15 digits; the text has all of them.
        return (
            yield Statement(
                f"""
                SELECT "modelKey", count(*), sum("inputTokens"), sum("outputTokens"), sum(cost::text::numeric)::text
                FROM @ai_calls
                WHERE true{where.text}
                GROUP BY "modelKey"
                ORDER BY "modelKey" COLLATE "C"
                """,
                tuple(where.args),
            )
        )


def _claim_served_run(now: datetime, serves: Sequence[ServedDefinition]) -> Statement:
    return Statement(
        """
        UPDATE @workflow_runs
        SET status = 'RUNNING', "startedAt" = $1::text::timestamp, "updatedAt" = $1::text::timestamp,
            version = version + 1
        WHERE id = (
            SELECT id
            FROM @workflow_runs
            WHERE status = 'PENDING'
              AND (
                  ("definitionVersion" IS NULL AND "workflowId" = ANY($2::text[]))
                  OR ("workflowId", "definitionVersion") IN (SELECT * FROM unnest($2::text[], $3::text[]))
              )
            ORDER BY priority DESC, "createdAt", id COLLATE "C"
            LIMIT 1
            FOR NO KEY UPDATE SKIP LOCKED
        )
        RETURNING @run.columns
        """,
        (now, *_pairs(serves)),
    )


def _pairs(serves: Sequence[ServedDefinition]) -> tuple[list[str], list[str]]:
    return [served.workflow_id for served in serves], [served.version for served in serves]


def _by_column(rows: Sequence[Values]) -> list[list[Any]]:
    return [_bound(column) for column in zip(*rows, strict=True)]


def _bound(column: Sequence[Any]) -> list[Any]:
    if not any(issubclass(kind, datetime) for kind in set(map(type, column))):
        return list(column)
    return [instant_text(value) if isinstance(value, datetime) else value for value in column]
