"""Every asynchronous method of the ports and of the operations, and transactions of several calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.cancellation.world import LATER, STALE, Case, World
from workflow_adapters import (
    CreateDefinitionInput,
    Ports,
    Status,
    StepRecordExpectation,
    StepRecordPatch,
    UpdateRunInput,
    UpdateStageInput,
    UpsertStageInput,
    WorkflowPersistence,
)
from workflow_adapters.records.status import StepStatus

LONG_AGO: Final = datetime(1990, 1, 1, tzinfo=UTC)
ALL: Final = 1_000_000
ZERO: Final = timedelta(0)
RUN_PATCH: Final = UpdateRunInput(status=Status.FAILED, output=[1])
STAGE_PATCH: Final = UpdateStageInput(status=Status.RUNNING)
STEP_PATCH: Final = StepRecordPatch(status=StepStatus.COMPLETED, result=[1])
RUNNING: Final = StepRecordExpectation(status=StepStatus.RUNNING)


async def nothing(_: World) -> None:
    """For calls that need no rows."""


async def a_dead_event(w: World) -> str:
    first, _ = await w.with_events()
    await w.persistence.move_outbox_event_to_dlq(first)
    return first


async def a_lease(w: World) -> Any:
    await w.with_events()
    return await w.persistence.lease_outbox_events(ALL, timedelta(days=1))


async def an_acquired_key(w: World) -> Any:
    return await w.persistence.acquire_idempotency_key(w.tag, "command")


async def a_failed_job(w: World) -> str:
    job = await w.with_claimed_job()
    await w.queue.fail(job.job_id, "e")
    return job.job_id


async def a_logged_call(w: World) -> None:
    w.logger.log_call(w.ai_call())


async def write_everything(w: World, ports: Ports) -> None:
    await ports.persistence.create_run(w.run())
    stage = await ports.persistence.create_stage(w.stage())
    await ports.job_queue.enqueue_parallel([w.job()])
    await ports.persistence.append_outbox_events([w.event()])
    await ports.step_ledger.claim(w.step(stage))


async def a_transaction(w: World, _: Any) -> None:
    async with w.adapters.transaction() as tx:
        await write_everything(w, tx)


async def nested_transactions(w: World, _: Any) -> None:
    async with w.adapters.transaction() as tx:
        await tx.persistence.create_run(w.run())
        async with tx.transaction() as inner:
            await inner.persistence.create_stage(w.stage())
            async with inner.persistence.transaction() as innermost:
                await innermost.append_annotations([w.annotation()])
        await tx.job_queue.enqueue_parallel([w.job()])


async def with_transaction(w: World, _: Any) -> None:
    async def work(tx: WorkflowPersistence) -> None:
        await tx.create_run(w.run())
        await tx.create_stage(w.stage())

    await w.persistence.with_transaction(work)


async def read_in_transaction(w: World, _: Any) -> None:
    async with w.adapters.transaction() as tx:
        await tx.persistence.create_run(w.run())
        await tx.ai_call_logger.get_stats(w.tag)


def definition(w: World) -> CreateDefinitionInput:
    return CreateDefinitionInput(workflow_id=w.tag, version="1", snapshot={}, structure_hash="h")


def upsert(w: World) -> UpsertStageInput:
    return UpsertStageInput(create=w.stage(), update=STAGE_PATCH)


RUNS: Final = (
    Case("create_run", nothing, lambda w, _: w.persistence.create_run(w.run())),
    Case("update_run", World.with_run, lambda w, _: w.persistence.update_run(w.tag, RUN_PATCH)),
    Case("get_run", World.with_run, lambda w, _: w.persistence.get_run(w.tag)),
    Case("get_run_status", World.with_run, lambda w, _: w.persistence.get_run_status(w.tag)),
    Case("get_stuck_runs", World.with_run, lambda w, _: w.persistence.get_stuck_runs(LONG_AGO)),
    Case("claim_next_pending_run", World.with_run, lambda w, _: w.persistence.claim_next_pending_run(None, w.serves)),
    Case("list_runs_for_purge", nothing, lambda w, _: w.persistence.list_runs_for_purge(LONG_AGO, [Status.FAILED], 1)),
    Case("delete_run", World.with_steps, lambda w, _: w.persistence.delete_run(w.tag)),
    Case("insert_definition_if_absent", nothing, lambda w, _: w.persistence.insert_definition_if_absent(definition(w))),
    Case("get_definition", nothing, lambda w, _: w.persistence.get_definition(w.tag, "1")),
    Case(
        "ensure_definition_versioning_detected",
        nothing,
        lambda w, _: w.persistence.ensure_definition_versioning_detected(),
    ),
    Case(
        "count_runs_by_definition_version",
        World.with_run,
        lambda w, _: w.persistence.count_runs_by_definition_version(w.tag),
    ),
)
STAGES: Final = (
    Case("create_stage", World.with_run, lambda w, _: w.persistence.create_stage(w.stage())),
    Case("upsert_stage, creating", World.with_run, lambda w, _: w.persistence.upsert_stage(upsert(w))),
    Case("upsert_stage, updating", World.with_stage, lambda w, _: w.persistence.upsert_stage(upsert(w))),
    Case("update_stage", World.with_stage, lambda w, stage: w.persistence.update_stage(stage.id, STAGE_PATCH)),
    Case("get_stage", World.with_stage, lambda w, _: w.persistence.get_stage(w.tag, "s")),
    Case("get_stages_by_run", World.with_stage, lambda w, _: w.persistence.get_stages_by_run(w.tag)),
    Case("get_suspended_stages", nothing, lambda w, _: w.persistence.get_suspended_stages(LATER, 5, w.serves)),
    Case("delete_stage", World.with_steps, lambda w, stage: w.persistence.delete_stage(stage.id)),
    Case("create_log", World.with_run, lambda w, _: w.persistence.create_log(w.log())),
    Case(
        "append_annotations",
        World.with_run,
        lambda w, _: w.persistence.append_annotations([w.annotation("a"), w.annotation("b")]),
    ),
    Case("list_annotations", World.with_run, lambda w, _: w.persistence.list_annotations(w.tag)),
)
OUTBOX: Final = (
    Case(
        "append_outbox_events",
        nothing,
        lambda w, _: w.persistence.append_outbox_events([w.event("a"), w.event("b")]),
    ),
    Case("get_unpublished_outbox_events", World.with_events, lambda w, _: w.events()),
    Case(
        "claim_unpublished_outbox_events",
        World.with_events,
        lambda w, _: w.persistence.claim_unpublished_outbox_events(ALL),
    ),
    Case("release_outbox_events", World.with_events, lambda w, ids: w.persistence.release_outbox_events(ids)),
    Case(
        "mark_outbox_events_published",
        World.with_events,
        lambda w, ids: w.persistence.mark_outbox_events_published(ids),
    ),
    Case(
        "increment_outbox_retry_count",
        World.with_events,
        lambda w, ids: w.persistence.increment_outbox_retry_count(ids[0]),
    ),
    Case("move_outbox_event_to_dlq", World.with_events, lambda w, ids: w.persistence.move_outbox_event_to_dlq(ids[0])),
    Case("replay_dlq_events", a_dead_event, lambda w, _: w.persistence.replay_dlq_events(ALL)),
    Case("lease_outbox_events", World.with_events, lambda w, _: w.persistence.lease_outbox_events(ALL)),
    Case(
        "confirm_outbox_events",
        a_lease,
        lambda w, lease: w.persistence.confirm_outbox_events(lease.token, [event.id for event in lease.events]),
    ),
    Case("release_outbox_lease", a_lease, lambda w, lease: w.persistence.release_outbox_lease(lease.token)),
)
KEYS: Final = (
    Case("acquire_idempotency_key", nothing, lambda w, _: an_acquired_key(w)),
    Case(
        "complete_idempotency_key",
        an_acquired_key,
        lambda w, held: w.persistence.complete_idempotency_key(w.tag, "command", 7, held.fence),
    ),
    Case(
        "release_idempotency_key",
        an_acquired_key,
        lambda w, held: w.persistence.release_idempotency_key(w.tag, "command", held.fence),
    ),
)
JOBS: Final = (
    Case("enqueue_parallel", World.with_jobs, lambda w, _: w.queue.enqueue_parallel([w.job("s"), w.job("u")])),
    Case("enqueue", nothing, lambda w, _: w.queue.enqueue(w.job())),
    Case(
        "delete_by_run_and_stages",
        World.with_jobs,
        lambda w, _: w.queue.delete_by_run_and_stages(w.tag, ["s", "t"]),
    ),
    Case("dequeue", World.with_jobs, lambda w, _: w.queue.dequeue(w.serves)),
    Case("dequeue_many", World.with_jobs, lambda w, _: w.queue.dequeue_many(2, w.serves)),
    Case("complete", World.with_claimed_job, lambda w, job: w.queue.complete(job.job_id, job.fence)),
    Case("suspend", World.with_claimed_job, lambda w, job: w.queue.suspend(job.job_id, LATER, job.fence)),
    Case("fail", World.with_claimed_job, lambda w, job: w.queue.fail(job.job_id, "e", True, job.fence)),
    Case("defer", World.with_claimed_job, lambda w, job: w.queue.defer(job.job_id, LATER, "why", job.fence)),
    Case("cancel_by_run", World.with_jobs, lambda w, _: w.queue.cancel_by_run(w.tag)),
    Case("touch_job", World.with_claimed_job, lambda w, job: w.queue.touch_job(job.job_id)),
    Case("complete_many", World.with_claimed_job, lambda w, job: w.queue.complete_many([(job.job_id, job.fence)])),
    Case("heartbeat", World.with_claimed_job, lambda w, job: w.queue.heartbeat([(job.job_id, job.fence)])),
    Case("release_stale_jobs", World.with_claimed_job, lambda w, _: w.queue.release_stale_jobs(STALE)),
    Case("expire_runaway_jobs", World.with_claimed_job, lambda w, _: w.queue.expire_runaway_jobs(STALE)),
    Case("get_jobs_by_workflow_run", World.with_jobs, lambda w, _: w.queue.get_jobs_by_workflow_run(w.tag)),
    Case("wait_for_jobs", nothing, lambda w, _: w.queue.wait_for_jobs(ZERO)),
)
STEPS: Final = (
    Case("claim", World.with_stage, lambda w, stage: w.ledger.claim(w.step(stage))),
    Case("get", World.with_steps, lambda w, stage: w.ledger.get(stage.id, "a")),
    Case("update", World.with_steps, lambda w, stage: w.ledger.update(stage.id, "a", STEP_PATCH)),
    Case(
        "compare_and_set",
        World.with_steps,
        lambda w, stage: w.ledger.compare_and_set(stage.id, "a", RUNNING, STEP_PATCH),
    ),
    Case("list", World.with_steps, lambda w, stage: w.ledger.list(stage.id)),
    Case("clear", World.with_steps, lambda w, stage: w.ledger.clear(stage.id)),
    Case("clear_except", World.with_steps, lambda w, stage: w.ledger.clear_except(stage.id, ["b"])),
)
CALLS: Final = (
    Case(
        "log_batch_results",
        nothing,
        lambda w, _: w.logger.log_batch_results(w.tag, [w.ai_call("1"), w.ai_call("2")]),
    ),
    Case("get_stats", nothing, lambda w, _: w.logger.get_stats(w.tag)),
    Case("is_recorded", nothing, lambda w, _: w.logger.is_recorded(w.tag)),
    Case("list_calls", nothing, lambda w, _: w.logger.list_calls(w.tag)),
    Case("flush", a_logged_call, lambda w, _: w.logger.flush()),
)
OPERATIONS: Final = (
    Case("queue_stats", nothing, lambda w, _: w.operations.queue_stats()),
    Case("outbox_stats", nothing, lambda w, _: w.operations.outbox_stats()),
    Case("list_runs", World.with_run, lambda w, _: w.operations.list_runs()),
    Case("list_jobs", World.with_jobs, lambda w, _: w.operations.list_jobs()),
    Case("list_logs", World.with_run, lambda w, _: w.operations.list_logs(w.tag)),
    Case("list_dead_outbox_events", nothing, lambda w, _: w.operations.list_dead_outbox_events()),
    Case("get_job", World.with_jobs, lambda w, ids: w.operations.get_job(ids[0])),
    Case("requeue_job", a_failed_job, lambda w, job_id: w.operations.requeue_job(job_id)),
    Case("cancel_job", World.with_jobs, lambda w, ids: w.operations.cancel_job(ids[0])),
    Case("purge_jobs", a_failed_job, lambda w, _: w.operations.purge_jobs(LATER, ALL)),
    Case("purge_outbox_events", World.with_events, lambda w, _: w.operations.purge_outbox_events(LATER, ALL)),
    Case("purge_dead_outbox_events", a_dead_event, lambda w, _: w.operations.purge_dead_outbox_events(LATER, ALL)),
    Case(
        "purge_idempotency_keys", an_acquired_key, lambda w, _: w.operations.purge_idempotency_keys(False, LATER, ALL)
    ),
    Case("purge_ai_calls", nothing, lambda w, _: w.operations.purge_ai_calls(LATER, ALL)),
)
BUNDLE: Final = (
    Case("transaction", nothing, a_transaction),
    Case("transaction, nested", nothing, nested_transactions),
    Case("transaction, reading calls", a_logged_call, read_in_transaction),
    Case("with_transaction", nothing, with_transaction),
    Case("migrate", nothing, lambda w, _: w.adapters.migrate()),
    Case("check_schema", nothing, lambda w, _: w.adapters.check_schema()),
)
CASES: Final = (*RUNS, *STAGES, *OUTBOX, *KEYS, *JOBS, *STEPS, *CALLS, *OPERATIONS, *BUNDLE)
