"""Worked examples for runs and definitions."""

from __future__ import annotations

from tests.worked_examples.examples import (
    FAR_AHEAD,
    HOUR,
    LONG_AGO,
    MINUTE,
    START,
    Pair,
    World,
    annotation,
    error_of,
    event,
    example,
    job,
    run,
    stage,
)
from workflow_adapters import (
    CreateDefinitionInput,
    CreateLogInput,
    LogLevel,
    ServedDefinition,
    Status,
    UpdateRunInput,
)


@example("create_run", "status PENDING; version starts at 1; priority 5; config {}; total_cost 0.0, redrive_count 0")
async def create_run_defaults(w: World) -> Pair:
    r = await w.persistence.create_run(run())
    observed = (r.status, r.version, r.priority, r.config, r.total_cost, r.total_tokens, r.redrive_count, r.output)
    return observed, (Status.PENDING, 1, 5, {}, 0.0, 0, 0, None)


@example("create_run", "A taken id: AlreadyExistsError")
async def create_run_taken(w: World) -> Pair:
    await w.persistence.create_run(run())
    return await error_of(w.persistence.create_run(run())), ("AlreadyExistsError", "run", "r1")


@example("create_run", "JSON values round-trip exactly")
async def create_run_json(w: World) -> Pair:
    value = {"f": 1e23, "i": 2**70, "n": None, "l": [True, 1.0, "ü"], "e": {}}
    r = await w.persistence.create_run(run(input=value))
    again = await w.persistence.get_run("r1")
    return (r.input, again.input, [type(x) for x in again.input["l"]]), (value, value, [bool, float, str])


@example("update_run", "bumps version by one and sets updated_at on every call")
async def update_run_bumps(w: World) -> Pair:
    await w.persistence.create_run(run())
    w.clock.advance(MINUTE)
    await w.persistence.update_run("r1", UpdateRunInput())
    r = await w.persistence.get_run("r1")
    return (r.version, r.updated_at, r.created_at), (2, START + MINUTE, START)


@example("update_run", "writes only if the stored version equals it, else StaleVersionError")
async def update_run_stale(w: World) -> Pair:
    await w.persistence.create_run(run())
    failed = await error_of(w.persistence.update_run("r1", UpdateRunInput(status=Status.FAILED, expected_version=7)))
    return (failed, await w.persistence.get_run_status("r1")), (
        ("StaleVersionError", "run", "r1", 7, 1),
        Status.PENDING,
    )


@example("update_run", "Unknown id: NotFoundError")
async def update_run_unknown(w: World) -> Pair:
    return await error_of(w.persistence.update_run("nope", UpdateRunInput())), ("NotFoundError", "run", "nope")


@example("update_run", "a field left out leaves the column alone; None is written")
async def update_run_null(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.update_run("r1", UpdateRunInput(output=[0], duration=0, started_at=START))
    await w.persistence.update_run("r1", UpdateRunInput(duration=None))
    r = await w.persistence.get_run("r1")
    return (r.output, r.duration, r.started_at), ([0], None, START)


@example("get_run", "record or None")
async def get_run_none(w: World) -> Pair:
    return await w.persistence.get_run("nope"), None


@example("get_run", "every datetime comes back as UTC, to the millisecond")
async def get_run_time(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.update_run("r1", UpdateRunInput(completed_at=START.replace(microsecond=678_900)))
    r = await w.persistence.get_run("r1")
    return (r.completed_at, str(r.completed_at.tzinfo)), (START.replace(microsecond=678_000), "UTC")


@example("get_run", "a record is a copy: nothing that a caller changes in it reaches the store")
async def get_run_copy(w: World) -> Pair:
    await w.persistence.create_run(run(input={"l": [1]}))
    (await w.persistence.get_run("r1")).input["l"].append(2)
    return (await w.persistence.get_run("r1")).input, {"l": [1]}


@example("get_run_status", "status or None")
async def get_run_status_none(w: World) -> Pair:
    return await w.persistence.get_run_status("nope"), None


@example("get_run_status", "the status of a new run is PENDING")
async def get_run_status_new(w: World) -> Pair:
    await w.persistence.create_run(run())
    return await w.persistence.get_run_status("r1"), Status.PENDING


@example("get_run_status", "the status last written")
async def get_run_status_skipped(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.update_run("r1", UpdateRunInput(status=Status.SKIPPED))
    return await w.persistence.get_run_status("r1"), Status.SKIPPED


@example("get_stuck_runs", "RUNNING runs with updated_at <= stuck_since")
async def stuck_inclusive(w: World) -> Pair:
    for id in ("r1", "r2"):
        await w.persistence.create_run(run(id))
    await w.persistence.update_run("r1", UpdateRunInput(status=Status.RUNNING))
    at = [r.id for r in await w.persistence.get_stuck_runs(START)]
    before = [r.id for r in await w.persistence.get_stuck_runs(START - MINUTE)]
    return (at, before), (["r1"], [])


@example("get_stuck_runs", "and no stage whose updated_at is > stuck_since")
async def stuck_with_live_stage(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.update_run("r1", UpdateRunInput(status=Status.RUNNING))
    w.clock.advance(MINUTE)
    await w.persistence.create_stage(stage())
    return [r.id for r in await w.persistence.get_stuck_runs(START)], []


@example("get_stuck_runs", "by updated_at then id")
async def stuck_order(w: World) -> Pair:
    for id in ("b", "a", "c"):
        await w.persistence.create_run(run(id))
    for id in ("c", "b", "a"):
        await w.persistence.update_run(id, UpdateRunInput(status=Status.RUNNING))
        if id == "c":
            w.clock.advance(MINUTE)
    return [r.id for r in await w.persistence.get_stuck_runs(FAR_AHEAD)], ["c", "a", "b"]


@example("claim_next_pending_run", "the highest priority, then the oldest (created_at, then id)")
async def claim_order(w: World) -> Pair:
    await w.persistence.create_run(run("late", priority=5))
    await w.persistence.create_run(run("also", priority=5))
    w.clock.advance(MINUTE)
    await w.persistence.create_run(run("first", priority=9))
    claimed = [(await w.persistence.claim_next_pending_run()).id for _ in range(3)]
    return (claimed, await w.persistence.claim_next_pending_run()), (["first", "also", "late"], None)


@example("claim_next_pending_run", "RUNNING, started_at = updated_at = now, version + 1; now is what gets stored")
async def claim_stamps(w: World) -> Pair:
    await w.persistence.create_run(run())
    r = await w.persistence.claim_next_pending_run(now=START + HOUR)
    return (r.status, r.started_at, r.updated_at, r.version), (Status.RUNNING, START + HOUR, START + HOUR, 2)


@example("claim_next_pending_run", "a pinned run is claimable only by a caller that presents its pair")
async def claim_pinned(w: World) -> Pair:
    await w.persistence.create_run(run(definition_version="v2"))
    other = await w.persistence.claim_next_pending_run(serves=[ServedDefinition(workflow_id="w", version="v1")])
    mine = await w.persistence.claim_next_pending_run(serves=[ServedDefinition(workflow_id="w", version="v2")])
    return (other, mine.id), (None, "r1")


@example(
    "claim_next_pending_run", "an unpinned run only by a caller whose serves names its workflow; empty claims nothing"
)
async def claim_unpinned(w: World) -> Pair:
    await w.persistence.create_run(run())
    none = await w.persistence.claim_next_pending_run(serves=[])
    foreign = await w.persistence.claim_next_pending_run(serves=[ServedDefinition(workflow_id="x", version="v1")])
    mine = await w.persistence.claim_next_pending_run(serves=[ServedDefinition(workflow_id="w", version="v9")])
    return (none, foreign, mine.id), (None, None, "r1")


@example("list_runs_for_purge", "finished at or before cutoff (completed_at, or updated_at where it is null)")
async def purge_finish_time(w: World) -> Pair:
    for id in ("done", "null", "later"):
        await w.persistence.create_run(run(id))
    await w.persistence.update_run("done", UpdateRunInput(status=Status.COMPLETED, completed_at=START - HOUR))
    await w.persistence.update_run("null", UpdateRunInput(status=Status.FAILED))
    await w.persistence.update_run("later", UpdateRunInput(status=Status.FAILED, completed_at=START + HOUR))
    found = await w.persistence.list_runs_for_purge(START, [Status.COMPLETED, Status.FAILED], 10)
    return [r.id for r in found], ["done", "null"]


@example("list_runs_for_purge", "PurgeableRun(id, workflow_type, status, stage_record_ids)")
async def purge_record(w: World) -> Pair:
    record_id = await w.stage_record_id()
    await w.persistence.update_run("r1", UpdateRunInput(status=Status.CANCELLED))
    [found] = await w.persistence.list_runs_for_purge(FAR_AHEAD, [Status.CANCELLED], 10)
    observed = (found.id, found.workflow_type, found.status, tuple(found.stage_record_ids))
    return observed, ("r1", "t", Status.CANCELLED, (record_id,))


@example("list_runs_for_purge", "purgeable ones only, else InvalidValueError")
async def purge_status(w: World) -> Pair:
    failed = await error_of(w.persistence.list_runs_for_purge(START, [Status.FAILED, Status.RUNNING], 10))
    return failed, ("InvalidValueError", "statuses[1]")


@example("list_runs_for_purge", "at most limit; no statuses, no runs")
async def purge_limit(w: World) -> Pair:
    for id in ("a", "b"):
        await w.persistence.create_run(run(id))
        await w.persistence.update_run(id, UpdateRunInput(status=Status.FAILED))
    one = await w.persistence.list_runs_for_purge(FAR_AHEAD, [Status.FAILED], 1)
    none = await w.persistence.list_runs_for_purge(FAR_AHEAD, [], 10)
    return ([r.id for r in one], none), (["a"], [])


@example("delete_run", "the run and its stages, steps, logs, artifacts and annotations")
async def delete_run_children(w: World) -> Pair:
    await w.stage_record_id()
    await w.persistence.append_annotations([annotation()])
    await w.persistence.create_log(CreateLogInput(level=LogLevel.INFO, message="m", workflow_run_id="r1"))
    await w.persistence.delete_run("r1")
    left = (await w.persistence.get_stages_by_run("r1"), await w.persistence.list_annotations("r1"))
    return (left, (await w.operations.list_logs("r1")).items), (([], []), ())


@example("delete_run", "Unknown id: no-op")
async def delete_run_unknown(w: World) -> Pair:
    return await w.persistence.delete_run("nope"), None


@example("delete_run", "Outbox events, idempotency keys and job rows are not touched")
async def delete_run_keeps(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.append_outbox_events([event()])
    await w.queue.enqueue_parallel([job()])
    await w.persistence.delete_run("r1")
    events = await w.persistence.get_unpublished_outbox_events()
    return (len(events), len(await w.queue.get_jobs_by_workflow_run("r1"))), (1, 1)


def _definition(version: str = "v1", snapshot: object = None) -> CreateDefinitionInput:
    return CreateDefinitionInput(workflow_id="w", version=version, snapshot=snapshot, structure_hash="h")  # pyright: ignore[reportArgumentType]  # any JSON


@example("supports_definition_versioning", "True on a schema that has the tables")
async def versioning_supported(w: World) -> Pair:
    await w.persistence.ensure_definition_versioning_detected()
    return w.persistence.supports_definition_versioning(), True


@example("supports_definition_versioning", "synchronous")
async def versioning_sync(w: World) -> Pair:
    await w.persistence.ensure_definition_versioning_detected()
    return type(w.persistence.supports_definition_versioning()), bool


@example("supports_definition_versioning", "the same inside a transaction")
async def versioning_in_transaction(w: World) -> Pair:
    await w.persistence.ensure_definition_versioning_detected()
    async with w.persistence.transaction() as tx:
        return tx.supports_definition_versioning(), True


@example("ensure_definition_versioning_detected", "confirms against the live schema")
async def versioning_detected(w: World) -> Pair:
    return await w.persistence.ensure_definition_versioning_detected(), True


@example("ensure_definition_versioning_detected", "confirms once: the second answer is the first")
async def versioning_detected_twice(w: World) -> Pair:
    detect = w.persistence.ensure_definition_versioning_detected
    return (await detect(), await detect()), (True, True)


@example("ensure_definition_versioning_detected", "a read that cannot fail inside the caller's transaction")
async def versioning_detected_in_transaction(w: World) -> Pair:
    async with w.persistence.transaction() as tx:
        found = await tx.ensure_definition_versioning_detected()
        await tx.create_run(run())
    return (found, await w.persistence.get_run_status("r1")), (True, Status.PENDING)


@example(
    "insert_definition_if_absent",
    "WorkflowDefinitionRecord(workflow_id, version, created_at, snapshot, structure_hash)",
)
async def definition_inserted(w: World) -> Pair:
    d = await w.persistence.insert_definition_if_absent(_definition(snapshot={"s": [1]}))
    observed = (d.workflow_id, d.version, d.created_at, d.snapshot, d.structure_hash)
    return observed, ("w", "v1", START, {"s": [1]}, "h")


@example("insert_definition_if_absent", "a second registration returns the stored row unchanged")
async def definition_again(w: World) -> Pair:
    await w.persistence.insert_definition_if_absent(_definition(snapshot=1))
    w.clock.advance(MINUTE)
    d = await w.persistence.insert_definition_if_absent(_definition(snapshot=2))
    return (d.snapshot, d.created_at), (1, START)


@example("insert_definition_if_absent", "None is a JSON value and reads back as None")
async def definition_null(w: World) -> Pair:
    return (await w.persistence.insert_definition_if_absent(_definition())).snapshot, None


@example("get_definition", "the stored version")
async def get_definition_stored(w: World) -> Pair:
    await w.persistence.insert_definition_if_absent(_definition())
    return (await w.persistence.get_definition("w", "v1")).structure_hash, "h"


@example("get_definition", "None for another version")
async def get_definition_other(w: World) -> Pair:
    await w.persistence.insert_definition_if_absent(_definition())
    return await w.persistence.get_definition("w", "v2"), None


@example("get_definition", "ids that are empty are refused")
async def get_definition_invalid(w: World) -> Pair:
    return await error_of(w.persistence.get_definition("", "v")), ("InvalidValueError", "workflow_id")


@example("count_runs_by_definition_version", "DefinitionVersionCount per workflow, version and status")
async def count_versions(w: World) -> Pair:
    await w.persistence.create_run(run("r1", definition_version="v1"))
    w.clock.advance(MINUTE)
    await w.persistence.create_run(run("r2", definition_version="v1"))
    await w.persistence.create_run(run("r3"))
    found = await w.persistence.count_runs_by_definition_version()
    observed = [(c.workflow_id, c.definition_version, c.status, c.count, c.oldest_created_at) for c in found]
    return observed, [("w", None, Status.PENDING, 1, START + MINUTE), ("w", "v1", Status.PENDING, 2, START)]


@example("count_runs_by_definition_version", "status is a filter by sequence")
async def count_status(w: World) -> Pair:
    await w.persistence.create_run(run("r1", definition_version="v1"))
    found = await w.persistence.count_runs_by_definition_version(status=[Status.FAILED, Status.COMPLETED])
    return found, []


@example("count_runs_by_definition_version", "workflow_id and definition_version are filters")
async def count_filters(w: World) -> Pair:
    await w.persistence.create_run(run("r1", definition_version="v1"))
    await w.persistence.create_run(run("r2", definition_version="v2"))
    await w.persistence.create_run(run("r3", workflow_id="x", definition_version="v1"))
    found = await w.persistence.count_runs_by_definition_version(workflow_id="w", definition_version="v1")
    return [(c.workflow_id, c.definition_version, c.count) for c in found], [("w", "v1", 1)]


@example("delete_run", "and every stage: a second look finds no run")
async def delete_run_gone(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.delete_run("r1")
    return (await w.persistence.get_run("r1"), await w.persistence.list_runs_for_purge(LONG_AGO, [], 1)), (None, [])
