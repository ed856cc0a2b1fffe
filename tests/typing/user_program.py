"""A user's program that calls everything which the built-in bundle has, under pyright's strict rules, without a cast.

It is checked with the rest by ``make check``, and run by `test_user_program`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.memory.inputs import ai_call, annotation, event, job, run, stage
from workflow_adapters import (
    MISSING,
    Acquired,
    AnnotationFilters,
    ArtifactType,
    BuiltInAdapters,
    BuiltInAICallLogger,
    BuiltInJobQueue,
    BuiltInPersistence,
    BuiltInPostgresAdapters,
    BuiltInStepLedger,
    BuiltInTransaction,
    CreateDefinitionInput,
    CreateLogInput,
    DequeueResult,
    JobAckOutcome,
    LogLevel,
    NewStep,
    Operations,
    SaveArtifactInput,
    Status,
    StepKind,
    StepRecordExpectation,
    StepRecordPatch,
    StepStatus,
    UpdateRunInput,
    UpdateStageInput,
    UpsertStageInput,
)

LATER = datetime(2100, 1, 1, tzinfo=UTC)
SPAN = timedelta(minutes=1)


async def use(adapters: BuiltInAdapters) -> None:
    await adapters.migrate()
    await adapters.check_schema()
    await adapters.persistence.create_run(run())
    async with adapters.transaction() as tx:
        await use_transaction(tx)
    await use_runs(adapters.persistence)
    await use_stages(adapters.persistence)
    await use_artifacts(adapters.persistence)
    await use_outbox(adapters.persistence)
    await use_the_rest(adapters.persistence)
    await use_queue(adapters.job_queue)
    await use_ledger(adapters.step_ledger)
    await use_logger(adapters.ai_call_logger)
    await use_operations(adapters.operations)
    if isinstance(adapters, BuiltInPostgresAdapters):
        await use_postgres(adapters)


async def use_postgres(adapters: BuiltInPostgresAdapters) -> None:
    idle: int = adapters.pool_stats.idle
    assert idle >= 0
    assert adapters.listener_state.value in ("off", "connecting", "listening")


async def use_bound(adapters: BuiltInAdapters, connection: object) -> None:
    async with adapters.bind(connection) as tx:
        await use_transaction(tx)


async def use_transaction(tx: BuiltInTransaction) -> None:
    assert await tx.job_queue.dequeue_many(3) == []
    async with tx.transaction() as savepoint:
        await savepoint.persistence.claim_pending_run("nobody's")
        await savepoint.ai_call_logger.flush()
    async with tx.persistence.transaction() as persistence:
        await persistence.lease_outbox_events()


async def use_runs(persistence: BuiltInPersistence) -> None:
    async def double(tx: BuiltInPersistence) -> int:
        return 2 * len(await tx.get_runs_by_status(Status.PENDING))

    assert await persistence.with_transaction(double) == 2
    assert await persistence.claim_pending_run("r")
    await persistence.update_run("r", UpdateRunInput(status=Status.RUNNING))
    assert await persistence.claim_next_pending_run() is None
    found = await persistence.get_run("r")
    assert found is not None
    assert await persistence.get_run_status("r") is found.status
    assert await persistence.get_stuck_runs(LATER) == [found]
    assert await persistence.list_runs_for_purge(LATER, [Status.FAILED], 1) == []
    await persistence.delete_run("unknown")


async def use_stages(persistence: BuiltInPersistence) -> None:
    made = await persistence.create_stage(stage(status=Status.SUSPENDED))
    await persistence.update_stage(made.id, UpdateStageInput(attempt=1))
    await persistence.update_stage_by_run_and_stage_id("r", "s", UpdateStageInput(attempt=2))
    again = await persistence.upsert_stage(UpsertStageInput(create=stage(), update=UpdateStageInput(attempt=3)))
    assert await persistence.get_stage("r", "s") == again == await persistence.get_stage_by_id(made.id)
    assert await persistence.get_stages_by_run("r", order="desc") == [again]
    assert await persistence.get_suspended_stages(LATER) == []
    assert await persistence.get_first_suspended_stage_ready_to_resume("r") == again
    assert await persistence.get_first_failed_stage("r") is None
    assert await persistence.get_last_completed_stage("r") is None
    assert await persistence.get_last_completed_stage_before("r", 2) is None
    assert await persistence.get_stage_id_for_artifact("r", "s") == made.id
    await persistence.delete_stage("unknown")


async def use_artifacts(persistence: BuiltInPersistence) -> None:
    artifact = SaveArtifactInput(workflow_run_id="r", key="a", type=ArtifactType.ARTIFACT, data=[1])
    await persistence.save_artifact(artifact)
    assert (await persistence.save_stage_output("r", "t", "s", {"done": True})).endswith("output.json")
    assert len(await persistence.list_artifacts("r")) == 2
    assert await persistence.get_artifact("r", "a") is not None
    assert await persistence.load_artifact("r", "b") is MISSING
    await persistence.delete_artifact("r", "a")
    assert not await persistence.has_artifact("r", "a")


async def use_outbox(persistence: BuiltInPersistence) -> None:
    await persistence.append_outbox_events([event(), event()])
    lease = await persistence.lease_outbox_events(2, SPAN)
    first, second = lease.events
    assert await persistence.confirm_outbox_events(lease.token, [first.id]) == 1
    await persistence.release_outbox_lease(lease.token)
    assert len(await persistence.get_unpublished_outbox_events()) == 1
    assert len(await persistence.claim_unpublished_outbox_events()) == 1
    await persistence.release_outbox_events([second.id])
    assert await persistence.increment_outbox_retry_count(second.id) == 1
    await persistence.move_outbox_event_to_dlq(second.id)
    assert await persistence.replay_dlq_events(1) == 1
    await persistence.mark_outbox_events_published([second.id])


async def use_the_rest(persistence: BuiltInPersistence) -> None:
    assert persistence.clock.now() < LATER
    assert await persistence.ensure_definition_versioning_detected() is persistence.supports_definition_versioning()
    new = CreateDefinitionInput(workflow_id="w", version="1", snapshot={}, structure_hash="h")
    assert await persistence.insert_definition_if_absent(new) == await persistence.get_definition("w", "1")
    (count,) = await persistence.count_runs_by_definition_version("w")
    assert count.count == 1
    await persistence.create_log(CreateLogInput(level=LogLevel.INFO, message="hello", workflow_run_id="r"))
    await persistence.append_annotations([annotation()])
    assert len(await persistence.list_annotations("r", AnnotationFilters(key="k"))) == 1
    acquired = await persistence.acquire_idempotency_key("key", "command")
    assert isinstance(acquired, Acquired)
    done = await persistence.complete_idempotency_key("key", "command", 1, acquired.fence)
    assert done is JobAckOutcome.ACKNOWLEDGED
    await persistence.release_idempotency_key("key", "command")


async def use_queue(queue: BuiltInJobQueue) -> None:
    assert queue.fairness_group_by is None
    assert queue.adopt_worker_id("worker") == "worker"
    assert await queue.enqueue(job("1"))
    await queue.enqueue_parallel([job(str(number)) for number in range(2, 7)])
    assert await queue.wait_for_jobs(SPAN)
    claimed: list[DequeueResult] = await queue.dequeue_many(5)
    one, two, three, four, five = claimed
    assert await queue.heartbeat([(one.job_id, one.fence)]) == [JobAckOutcome.ACKNOWLEDGED]
    assert await queue.complete_many([(one.job_id, one.fence)]) == [JobAckOutcome.ACKNOWLEDGED]
    assert await queue.complete(two.job_id, two.fence) is JobAckOutcome.ACKNOWLEDGED
    assert await queue.defer(three.job_id, LATER, "busy", three.fence) is JobAckOutcome.ACKNOWLEDGED
    assert await queue.suspend(four.job_id, LATER, four.fence) is JobAckOutcome.ACKNOWLEDGED
    assert await queue.fail(five.job_id, "why", fence=five.fence) is JobAckOutcome.ACKNOWLEDGED
    last = await queue.dequeue()
    assert last is not None
    await queue.touch_job(last.job_id)
    assert await queue.release_stale_jobs(SPAN) == 0
    assert await queue.expire_runaway_jobs(SPAN) == 0
    assert len(await queue.get_jobs_by_workflow_run("r")) == 6
    assert await queue.cancel_by_run("r") == 2
    assert await queue.delete_by_run_and_stages("r", ["1"]) == 1


async def use_ledger(ledger: BuiltInStepLedger) -> None:
    step = NewStep(stage_record_id="unknown", step_id="x", seq=1, kind=StepKind.RUN, status=StepStatus.RUNNING)
    assert await ledger.get(step.stage_record_id, step.step_id) is None
    expected = StepRecordExpectation(status=StepStatus.RUNNING)
    change = StepRecordPatch(status=StepStatus.COMPLETED)
    assert not (await ledger.compare_and_set(step.stage_record_id, step.step_id, expected, change)).applied
    assert await ledger.list(step.stage_record_id) == []
    await ledger.clear(step.stage_record_id)
    await ledger.clear_except(step.stage_record_id, ["x"])


async def use_steps(ledger: BuiltInStepLedger, step: NewStep) -> None:
    assert (await ledger.claim(step)).created
    assert (await ledger.update(step.stage_record_id, step.step_id, StepRecordPatch(result=1))).result == 1


async def use_logger(logger: BuiltInAICallLogger) -> None:
    logger.log_call(ai_call())
    await logger.flush()
    await logger.log_batch_results("batch", [ai_call()])
    assert await logger.is_recorded("batch")
    costs: list[float] = [call.cost for call in await logger.list_calls("")]
    assert len(costs) == (await logger.get_stats("")).total_calls


async def use_operations(operations: Operations) -> None:
    assert (await operations.queue_stats()).by_status[Status.PENDING] == 0
    assert (await operations.outbox_stats()).dead == 0
    assert (await operations.list_jobs()).next is None
