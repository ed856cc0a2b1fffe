"""Bulk inserts of logged calls: one statement, an array per column.

Rows go in sorted by their unique key, so that two batches with the same keys never deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workflow_adapters.sql.statement import Statement

_COST_COLUMNS = slice(11, 17)


def insert_ai_calls(columns: Sequence[Sequence[Any]]) -> Statement:
    """The fields of AICallRecord, in their order, as columns."""
    return Statement(
        """
        INSERT INTO @ai_calls (
            id, "createdAt", topic, "callType", "modelKey", "modelId", prompt, response, "inputTokens", "outputTokens",
            cost, "estimatedCost", "reportedCost", "costSource", "servedBy", "cachedInputTokens", "reasoningTokens",
            "batchId", "requestId", metadata
        )
        SELECT
            c.id, c.created_at::timestamp, c.topic, c.call_type, c.model_key, c.model_id, c.prompt, c.response,
            c.input_tokens, c.output_tokens, c.cost, c.estimated_cost, c.reported_cost, c.cost_source, c.served_by,
            c.cached_input_tokens, c.reasoning_tokens, c.batch_id, c.request_id, c.metadata::jsonb
        FROM unnest(
            $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[],
            $10::int[], $11::float8[], $12::float8[], $13::float8[], $14::text[], $15::text[], $16::int[], $17::int[],
            $18::text[], $19::text[], $20::text[]
        ) WITH ORDINALITY AS c (
            id, created_at, topic, call_type, model_key, model_id, prompt, response, input_tokens,
            output_tokens, cost, estimated_cost, reported_cost, cost_source, served_by, cached_input_tokens,
            reasoning_tokens, batch_id, request_id, metadata, position
        )
        ORDER BY c.batch_id, c.request_id, c.position
        ON CONFLICT DO NOTHING
        """,
        tuple(columns),
    )


def insert_ai_calls_without_costs(columns: Sequence[Sequence[Any]]) -> Statement:
    """The same where the columns from estimatedCost to reasoningTokens are missing."""
    kept = [*columns]
    del kept[_COST_COLUMNS]
    return Statement(
        """
        INSERT INTO @ai_calls (
            id, "createdAt", topic, "callType", "modelKey", "modelId", prompt, response, "inputTokens", "outputTokens",
            cost, "batchId", "requestId", metadata
        )
        SELECT
            c.id, c.created_at::timestamp, c.topic, c.call_type, c.model_key, c.model_id, c.prompt, c.response,
            c.input_tokens, c.output_tokens, c.cost, c.batch_id, c.request_id, c.metadata::jsonb
        FROM unnest(
            $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[],
            $10::int[], $11::float8[], $12::text[], $13::text[], $14::text[]
        ) WITH ORDINALITY AS c (
            id, created_at, topic, call_type, model_key, model_id, prompt, response, input_tokens,
            output_tokens, cost, batch_id, request_id, metadata, position
        )
        ORDER BY c.batch_id, c.request_id, c.position
        ON CONFLICT DO NOTHING
        """,
        tuple(kept),
    )
