"""Rows in bulk, and plans."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import asyncpg

from workflow_adapters import EnqueueJobInput
from workflow_adapters.ports.adapters import Ports
from workflow_adapters.postgres.job_queue import PostgresJobQueue
from workflow_adapters.postgres.style import PostgresStyle
from workflow_adapters.sql.statement import Statement

STYLE = PostgresStyle("public", "Status")


def a_job(run: str = "r", stage: str = "s", **values: Any) -> EnqueueJobInput:
    return EnqueueJobInput(**{"workflow_run_id": run, "workflow_id": "w", "stage_id": stage, **values})


def jobs(number: int, run: str = "r", **values: Any) -> list[EnqueueJobInput]:
    return [a_job(run, f"s{position:05}", **values) for position in range(number)]


def queue_of(bundle: Ports) -> PostgresJobQueue:
    """A bundle's job queue, as what it is."""
    assert isinstance(bundle.job_queue, PostgresJobQueue)
    return bundle.job_queue


async def deadlocks(dsn: str) -> int:
    """How often the server had to break one."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        return await connection.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    finally:
        await connection.close(timeout=10)


async def fill(
    connection: asyncpg.Connection,
    number: int,
    prefix: str,
    *,
    status: str = "PENDING",
    priority: str = "5",
    workflow: str = "'w'",
    version: str = "NULL",
    group: str = "NULL",
    due_at: str = "NULL",
    created: str = "timestamp '2024-01-01' + n * interval '1 ms'",
) -> None:
    """Jobs by the number; strings are SQL over n."""
    await connection.execute(
        f"""
        INSERT INTO job_queue (
            id, "createdAt", "updatedAt", "workflowRunId", "stageId", status, priority, attempt, "startedAt",
            "lockedAt", "completedAt", "nextPollAt", payload
        )
        SELECT
            '{prefix}' || lpad(n::text, 9, '0'), {created}, {created}, '{prefix}-run-' || n, 's', '{status}',
            {priority},
            CASE WHEN '{status}' = 'PENDING' THEN 0 ELSE 1 END,
            CASE WHEN '{status}' <> 'PENDING' THEN clock_timestamp() AT TIME ZONE 'UTC' END,
            CASE WHEN '{status}' = 'RUNNING' THEN clock_timestamp() AT TIME ZONE 'UTC' END,
            CASE WHEN '{status}' = 'COMPLETED' THEN clock_timestamp() AT TIME ZONE 'UTC' END,
            {due_at},
            jsonb_strip_nulls(
                jsonb_build_object('_workflowId', {workflow}, '_definitionVersion', {version}, '_groupKey', {group})
            )
        FROM generate_series(1, {number}) AS n
        """
    )


@dataclass
class Plan:
    """What EXPLAIN says of a statement's plan for any arguments."""

    nodes: list[dict[str, Any]]
    cost: float
    """What the server expects it to cost; from 100,000 on it would compile the statement."""
    pages: int
    """How many pages it looked at, where it was run."""

    @property
    def claimed(self) -> int:
        """How many jobs it claimed, where it was run."""
        return sum(node["Actual Rows"] for node in self.nodes if node.get("CTE Name") == "claimed")

    @property
    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    def scanned_whole(self) -> set[str]:
        """Tables that are read from end to end."""
        return {node["Relation Name"] for node in self.nodes if node["Node Type"].endswith("Seq Scan")}

    def joined(self) -> set[str]:
        return {
            node["Node Type"]
            for node in self.nodes
            if "Join" in node["Node Type"] or node["Node Type"] == "Nested Loop"
        }


async def plan_of(
    connection: asyncpg.Connection, statement: Statement, *, run: bool = False, kept: bool = True
) -> Plan:
    """The plan that the server keeps for any arguments, or the one for these; `run`: and undone afterwards."""
    await connection.execute(f"SET plan_cache_mode = force_{'generic' if kept else 'custom'}_plan")
    await connection.execute(f"PREPARE looked_at AS {STYLE.render(statement.text).text}")
    values = ", ".join(_literal(STYLE.argument(value)) for value in statement.args)
    arguments = f"({values})" if values else ""
    transaction = connection.transaction()
    await transaction.start()
    try:
        options = "ANALYZE, BUFFERS, FORMAT JSON" if run else "FORMAT JSON"
        said = await connection.fetchval(f"EXPLAIN ({options}) EXECUTE looked_at {arguments}")
    finally:
        await transaction.rollback()
        await connection.execute("DEALLOCATE looked_at; RESET plan_cache_mode")
    plan = json.loads(said)[0]["Plan"]
    nodes = _nodes(plan)
    pages = plan.get("Shared Hit Blocks", 0) + plan.get("Shared Read Blocks", 0)
    return Plan(nodes=nodes, cost=plan["Total Cost"], pages=pages)


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan] + [node for child in plan.get("Plans", ()) for node in _nodes(child)]


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return (
            f"ARRAY[{', '.join(_literal(item) for item in value)}]::text[]"
            if _is_text(value)
            else (f"ARRAY[{', '.join(_literal(item) for item in value)}]::bigint[]")
        )
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def _is_text(values: Any) -> bool:
    return not values or not isinstance(values[0], int)
