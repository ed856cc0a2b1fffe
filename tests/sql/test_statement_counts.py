"""What an operation costs where nobody is in its way: one statement, so that Postgres needs no BEGIN and COMMIT."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.sql.sqlite_database import PlainDatabase
from tests.worked_examples.examples import START, annotation, event, job, run, stage, step
from workflow_adapters import (
    CreateDefinitionInput,
    CreateLogInput,
    LogLevel,
    StepRecordExpectation,
    StepRecordPatch,
    StepStatus,
    UpdateRunInput,
    UpdateStageInput,
    UpsertStageInput,
)

pytestmark = pytest.mark.asyncio

Call = Callable[[Any], Awaitable[Any]]


def definition() -> CreateDefinitionInput:
    return CreateDefinitionInput(workflow_id="w", version="v", snapshot={}, structure_hash="h")


def log(run_id: str, stage_id: str) -> CreateLogInput:
    return CreateLogInput(level=LogLevel.INFO, message="m", workflow_run_id=run_id, workflow_stage_id=stage_id)


CALLS: dict[str, Call] = {
    "create_run": lambda p: p.persistence.create_run(run("new")),
    "update_run": lambda p: p.persistence.update_run("r1", UpdateRunInput(expected_version=1)),
    "claim_next_pending_run": lambda p: p.persistence.claim_next_pending_run(),
    "create_stage": lambda p: p.persistence.create_stage(stage(stage_id="new")),
    "upsert_stage, new": lambda p: p.persistence.upsert_stage(
        UpsertStageInput(create=stage(stage_id="new"), update=UpdateStageInput())
    ),
    "upsert_stage, stored": lambda p: p.persistence.upsert_stage(
        UpsertStageInput(create=stage(), update=UpdateStageInput(expected_version=1))
    ),
    "update_stage": lambda p: p.persistence.update_stage(p.stage_id, UpdateStageInput(expected_version=1)),
    "create_log": lambda p: p.persistence.create_log(log("r1", p.stage_id)),
    "append_annotations": lambda p: p.persistence.append_annotations([annotation(), annotation("other")]),
    "append_outbox_events": lambda p: p.persistence.append_outbox_events([event("a"), event("b")]),
    "acquire_idempotency_key": lambda p: p.persistence.acquire_idempotency_key("k", "c"),
    "insert_definition_if_absent": lambda p: p.persistence.insert_definition_if_absent(definition()),
    "ledger.claim": lambda p: p.step_ledger.claim(step(p.stage_id)),
    "ledger.compare_and_set": lambda p: p.step_ledger.compare_and_set(
        p.stage_id, "stored", StepRecordExpectation(status=StepStatus.RUNNING), StepRecordPatch(result=1)
    ),
    "enqueue_parallel": lambda p: p.job_queue.enqueue_parallel([job(f"new{n}") for n in range(100)]),
    "dequeue": lambda p: p.job_queue.dequeue(),
    "complete": lambda p: p.job_queue.complete(p.claimed.job_id, p.claimed.fence),
    "fail": lambda p: p.job_queue.fail(p.claimed.job_id, "e", True, p.claimed.fence),
    "suspend": lambda p: p.job_queue.suspend(p.claimed.job_id, START, p.claimed.fence),
    "defer": lambda p: p.job_queue.defer(p.claimed.job_id, START, "later", p.claimed.fence),
    "touch_job": lambda p: p.job_queue.touch_job(p.claimed.job_id),
    "heartbeat": lambda p: p.job_queue.heartbeat([(p.claimed.job_id, p.claimed.fence)]),
    "complete_many": lambda p: p.job_queue.complete_many([(p.claimed.job_id, p.claimed.fence)]),
    "release_stale_jobs": lambda p: p.job_queue.release_stale_jobs(timedelta(seconds=-1)),
    "expire_runaway_jobs": lambda p: p.job_queue.expire_runaway_jobs(timedelta(seconds=-1)),
    "purge_jobs": lambda p: p.operations.purge_jobs(START, 10),
}


@pytest.mark.parametrize("name", CALLS)
async def test_one_statement(database: PlainDatabase, ports_on: Callable[..., Any], name: str) -> None:
    ports = ports_on(database)
    await ports.persistence.create_run(run())
    ports.stage_id = (await ports.persistence.create_stage(stage())).id
    await ports.step_ledger.claim(step(ports.stage_id, "stored"))
    await ports.job_queue.enqueue_parallel([job("s1"), job("s2")])
    ports.claimed = await ports.job_queue.dequeue()
    database.statements.clear()
    await CALLS[name](ports)
    assert [text.split()[:2] for text, _ in database.statements] == [database.statements[0][0].split()[:2]]


@pytest.mark.parametrize("name", CALLS)
async def test_no_walk_through_a_whole_table(database: PlainDatabase, ports_on: Callable[..., Any], name: str) -> None:
    await test_one_statement(database, ports_on, name)
    [(text, args)] = database.statements
    plan = [row[3] for row in database.connection.execute(f"EXPLAIN QUERY PLAN {text}", args)]
    walks = [line for line in plan if line.startswith("SCAN") and "INDEX" not in line]
    assert [line for line in walks if line.split()[1] in TABLES] == []
    by_status = [line for line in plan if "wa_jobs_status (" in line or "workflow_runs_status" in line]
    assert by_status == [] or name in SWEEPS


TABLES = {"workflow_runs", "workflow_stages", "workflow_steps", "job_queue", "outbox_events", "idempotency_keys"}
SWEEPS = {"release_stale_jobs", "expire_runaway_jobs"}  # they look at all RUNNING jobs, of which there are few
