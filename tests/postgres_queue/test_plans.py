"""The plans that the server keeps for the statements that run all the time, with 100,000 finished jobs in the table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
import pytest_asyncio

from conformance.throwaway import ThrowawayServer
from tests.postgres_queue.recording import outbox_statement_of, statement_of
from tests.postgres_queue.support import STYLE, fill, plan_of
from workflow_adapters import JobAckFence, ServedDefinition, Status
from workflow_adapters.postgres.claims import claim_any, claim_known, claim_served
from workflow_adapters.postgres.dialect import PostgresDialect
from workflow_adapters.postgres.fairness import claim_any_fairly, claim_served_fairly
from workflow_adapters.postgres.fairness_deep import claim_deep_fairly, claim_known_fairly
from workflow_adapters.postgres.lanes import lane
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.statement import Statement

pytestmark = pytest.mark.asyncio

COMPILED_FROM = 100_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FENCE = JobAckFence(started_at=NOW, attempt=1)
CLAIMS = [("job", FENCE), ("other", FENCE)]
LANES = ("", lane("w", None), lane("w", "v"), lane("x", "v"))
READY = {"wa_job_queue_ready", "wa_job_queue_dated", "wa_job_queue_due"}
LANES_READY = {"wa_job_queue_lane_ready", "wa_job_queue_lane_dated", "wa_job_queue_lane_due"}
FAIR = {"wa_job_queue_running_group", "wa_fairness_turns_pkey"}
BY_KEY = {"job_queue_pkey"}

STATEMENTS: dict[str, tuple[Statement, set[str]]] = {
    "claim_any": (claim_any("me", 1, 0, 24), READY | BY_KEY),
    "claim_served": (claim_served("me", 1, 0, 24, LANES), LANES_READY | BY_KEY),
    "claim_known": (claim_known("me", 1, ["a", "b"]), BY_KEY),
    "claim_any_fairly": (claim_any_fairly("me", 1, 0, 24, 5), READY | FAIR | BY_KEY),
    "claim_served_fairly": (claim_served_fairly("me", 1, 0, 24, 5, LANES), LANES_READY | FAIR | BY_KEY),
    "claim_deep_fairly": (claim_deep_fairly("me", 1, 250, 5, None), {"wa_job_queue_lane_group"} | FAIR | BY_KEY),
    "claim_known_fairly": (
        claim_known_fairly("me", 1, ["a"], 5, [("1:w", "g")]),
        {"wa_job_queue_lane_group"} | FAIR | BY_KEY,
    ),
    "complete": (statement_of(lambda queue: queue.complete("job", FENCE)), BY_KEY),
    "complete_unfenced": (statement_of(lambda queue: queue.complete("job")), BY_KEY),
    "suspend": (statement_of(lambda queue: queue.suspend("job", NOW, FENCE)), BY_KEY),
    "fail": (statement_of(lambda queue: queue.fail("job", "why", True, FENCE)), BY_KEY),
    "defer": (statement_of(lambda queue: queue.defer("job", NOW, "why", FENCE)), BY_KEY),
    "touch_job": (statement_of(lambda queue: queue.touch_job("job")), BY_KEY),
    "complete_many": (statement_of(lambda queue: queue.complete_many(CLAIMS)), BY_KEY),
    "heartbeat": (statement_of(lambda queue: queue.heartbeat(CLAIMS)), BY_KEY),
    "cancel_by_run": (statement_of(lambda queue: queue.cancel_by_run("r")), {"job_queue_workflowRunId_stageId_key"}),
    "delete_by_run_and_stages": (
        statement_of(lambda queue: queue.delete_by_run_and_stages("r", ["s"])),
        {"job_queue_workflowRunId_stageId_key"},
    ),
    "get_jobs_by_workflow_run": (
        statement_of(lambda queue: queue.get_jobs_by_workflow_run("r")),
        {"job_queue_workflowRunId_stageId_key"},
    ),
    "release_stale_jobs": (statement_of(lambda queue: queue.release_stale_jobs()), BY_KEY),
    "expire_runaway_jobs": (statement_of(lambda queue: queue.expire_runaway_jobs(timedelta(hours=1))), BY_KEY),
    "next_due": (statement_of(lambda queue: queue._next_due()), {"wa_job_queue_ready", "wa_job_queue_due"}),
    # No look by key: joined to themselves, 5,000 events took 20 s where statistics were from a smaller table.
    "get_unpublished_outbox_events": (
        outbox_statement_of(lambda outbox: outbox.get_unpublished_outbox_events(100)),
        {"wa_outbox_events_unpublished", "outbox_events_publishedAt_idx"},
    ),
    "claim_unpublished_outbox_events": (
        outbox_statement_of(lambda outbox: outbox.claim_unpublished_outbox_events(100)),
        {"wa_outbox_events_unpublished", "outbox_events_publishedAt_idx"},
    ),
}

DIALECT = PostgresDialect()
OCCASIONAL: dict[str, tuple[Statement, set[str]]] = {
    "purge_jobs": (DIALECT.purge_jobs(NOW, 100), {"wa_job_queue_finished", "wa_job_queue_undated"} | BY_KEY),
    "purge_idempotency_keys": (DIALECT.purge_idempotency_keys(True, NOW, 100), {"wa_idempotency_keys_acquired"}),
    "list_runs_for_purge": (
        DIALECT.list_runs_for_purge(NOW, [Status.COMPLETED], 100),
        {"wa_workflow_runs_finished"},
    ),
    "claim_next_pending_run": (DIALECT.claim_next_pending_run(NOW, None), {"wa_workflow_runs_pending"}),
    "get_suspended_stages": (
        DIALECT.get_suspended_stages(
            NOW + timedelta(days=36500), 100, [ServedDefinition(workflow_id="w", version="v")]
        ),
        {"wa_workflow_stages_suspended"},
    ),
    "list_jobs": (DIALECT.list_jobs(Conditions(first=1), 100, every_job=True), {"job_queue_status_createdAt_idx"}),
    "is_recorded": (DIALECT.is_recorded("b"), {"wa_ai_calls_metadata_batch"}),
}


@pytest.fixture(scope="module")
def worked(server: ThrowawayServer, template: str) -> Iterator[str]:
    """A queue that has been worked on for a while."""
    with server.database(template) as dsn:
        asyncio.run(_work(dsn))
        yield dsn


async def _work(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await fill(connection, 100_000, "done", status="COMPLETED", due_at="CASE WHEN n % 10 = 0 THEN now() END")
    await fill(connection, 1_000, "ready", group="'g' || n % 50")
    await fill(connection, 1_000, "dated", group="'g' || n % 50", due_at="now() + n * interval '1 minute'")
    await fill(connection, 100, "running", group="'g' || n % 50", status="RUNNING")
    await connection.execute(
        """
        INSERT INTO outbox_events (
            id, "createdAt", "workflowRunId", sequence, "eventType", payload, "causationId", "occurredAt", "publishedAt"
        )
        SELECT n::text, now(), 'run-' || n % 1000, n / 1000 + 1, 't', '{}', 'c', now(),
            CASE WHEN n <= 99000 THEN now() END
        FROM generate_series(1, 100000) AS n
        """
    )
    await connection.execute(
        """
        INSERT INTO workflow_runs (
            id, "createdAt", "updatedAt", "workflowId", "workflowName", "workflowType", status, "completedAt", input
        )
        SELECT n::text, now(), now(), 'w', 'w', 't', CASE WHEN n <= 19000 THEN 'COMPLETED' ELSE 'PENDING' END::"Status",
            CASE WHEN n <= 19000 THEN now() - n * interval '1 s' END, '{}'
        FROM generate_series(1, 20000) AS n;
        INSERT INTO workflow_stages (
            id, "createdAt", "updatedAt", "workflowRunId", "stageId", "stageName", "stageNumber", "executionGroup",
            status, "nextPollAt"
        )
        SELECT n::text, now(), now(), n::text, 's', 's', 1, 1,
            CASE WHEN n % 100 = 0 THEN 'SUSPENDED' ELSE 'COMPLETED' END::"Status", now() - n * interval '1 s'
        FROM generate_series(1, 20000) AS n;
        INSERT INTO idempotency_keys (id, "createdAt", key, "commandType", result)
        SELECT n::text, now() - n * interval '1 s', n::text, 'c', '{}' FROM generate_series(1, 20000) AS n;
        INSERT INTO ai_calls (
            id, "createdAt", topic, "callType", "modelKey", "modelId", prompt, response, "inputTokens", "outputTokens",
            cost, metadata
        )
        SELECT n::text, now() - n * interval '1 s', 'topic' || n % 100, 'c', 'm', 'm', '', '', 1, 1, 1,
            jsonb_build_object('batchId', 'b' || n)
        FROM generate_series(1, 20000) AS n;
        """
    )
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


@pytest_asyncio.fixture
async def connection(worked: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(worked)
    yield connection
    await connection.close()


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_statement_uses_its_indexes_and_reads_no_table_whole(connection: asyncpg.Connection, name: str) -> None:
    statement, indexes = STATEMENTS[name]
    plan = await plan_of(connection, statement)
    assert indexes <= plan.indexes
    assert not plan.scanned_whole() & {"job_queue", "outbox_events"}
    assert plan.cost < COMPILED_FROM


@pytest.mark.parametrize("name", OCCASIONAL)
async def test_an_occasional_statement_uses_its_indexes_too(connection: asyncpg.Connection, name: str) -> None:
    statement, indexes = OCCASIONAL[name]
    plan = await plan_of(connection, statement, kept=False)
    assert indexes <= plan.indexes
    # Twenty thousand stages are read as quickly as those of a hundred runs are looked up.
    assert not plan.scanned_whole() - {"workflow_stages"}


async def test_a_claim_is_planned_once_and_not_for_each_value(own: str) -> None:
    connection = await asyncpg.connect(own)
    try:
        claim = await connection.prepare(_rendered(claim_served("me", 1, 0, 24, LANES)))
        for _ in range(8):
            await claim.fetch("me", 1, 0, list(LANES))
        kept = await connection.fetch(
            """
            SELECT generic_plans, custom_plans
            FROM pg_prepared_statements
            WHERE statement LIKE '%wa_lane%' AND statement NOT LIKE '%generic_plans%'
            """
        )
        assert [tuple(plans) for plans in kept] == [(3, 5)]
    finally:
        await connection.close()


def _rendered(statement: Statement) -> str:
    return STYLE.render(statement.text).text
