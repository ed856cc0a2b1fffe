"""Worked examples for stages, logs and annotations."""

from __future__ import annotations

from tests.worked_examples.examples import (
    HOUR,
    MINUTE,
    START,
    Pair,
    World,
    annotation,
    error_of,
    example,
    run,
    stage,
    step,
)
from workflow_adapters import (
    AnnotationActor,
    AnnotationFilters,
    CreateLogInput,
    LogLevel,
    ServedDefinition,
    Status,
    UpdateStageInput,
    UpsertStageInput,
)


@example("create_stage", "An unset status means PENDING here; attempt 0; version starts at 1")
async def create_stage_defaults(w: World) -> Pair:
    await w.persistence.create_run(run())
    s = await w.persistence.create_stage(stage())
    return (s.status, s.attempt, s.version, s.started_at, s.config), (Status.PENDING, 0, 1, None, None)


@example("create_stage", "Unknown run: NotFoundError")
async def create_stage_orphan(w: World) -> Pair:
    return await error_of(w.persistence.create_stage(stage("nope"))), ("NotFoundError", "run", "nope")


@example("create_stage", "Taken pair: AlreadyExistsError")
async def create_stage_taken(w: World) -> Pair:
    await w.stage_record_id()
    return await error_of(w.persistence.create_stage(stage())), ("AlreadyExistsError", "stage", "r1/s1")


@example("upsert_stage", "creates: an unset status means RUNNING and an unset started_at means now")
async def upsert_creates(w: World) -> Pair:
    await w.persistence.create_run(run())
    s = await w.persistence.upsert_stage(UpsertStageInput(create=stage(), update=UpdateStageInput(expected_version=9)))
    return (s.status, s.started_at, s.version), (Status.RUNNING, START, 1)


@example("upsert_stage", "applies every field of update and bumps version; id and created_at survive")
async def upsert_updates(w: World) -> Pair:
    id = await w.stage_record_id()
    w.clock.advance(MINUTE)
    s = await w.persistence.upsert_stage(
        UpsertStageInput(create=stage(stage_name="ignored"), update=UpdateStageInput(status=Status.FAILED, metrics=[1]))
    )
    observed = (s.id, s.created_at, s.updated_at, s.version, s.status, s.metrics, s.stage_name)
    return observed, (id, START, START + MINUTE, 2, Status.FAILED, [1], "S")


@example("upsert_stage", "An expected_version in update is honoured on the update path, nothing written")
async def upsert_stale(w: World) -> Pair:
    id = await w.stage_record_id()
    patch = UpdateStageInput(status=Status.FAILED, expected_version=4)
    failed = await error_of(w.persistence.upsert_stage(UpsertStageInput(create=stage(), update=patch)))
    status = (await w.persistence.get_stage("r1", "s1")).status
    return (failed, status), (("StaleVersionError", "stage", id, 4, 1), Status.PENDING)


@example("upsert_stage", "Unknown run: NotFoundError")
async def upsert_orphan(w: World) -> Pair:
    upsert = UpsertStageInput(create=stage("nope"), update=UpdateStageInput())
    return await error_of(w.persistence.upsert_stage(upsert)), ("NotFoundError", "run", "nope")


@example("update_stage", "version and updated_at bump on every call")
async def update_stage_bumps(w: World) -> Pair:
    id = await w.stage_record_id()
    w.clock.advance(MINUTE)
    await w.persistence.update_stage(id, UpdateStageInput())
    s = await w.persistence.get_stage("r1", "s1")
    return (s.version, s.updated_at), (2, START + MINUTE)


@example("update_stage", "StaleVersionError as for runs")
async def update_stage_stale(w: World) -> Pair:
    id = await w.stage_record_id()
    failed = await error_of(w.persistence.update_stage(id, UpdateStageInput(expected_version=3)))
    return failed, ("StaleVersionError", "stage", id, 3, 1)


@example("update_stage", "NotFoundError as for runs")
async def update_stage_unknown(w: World) -> Pair:
    failed = await error_of(w.persistence.update_stage("nope", UpdateStageInput(expected_version=3)))
    return failed, ("NotFoundError", "stage", "nope")


@example("update_stage", "None clears, a falsy value is a value")
async def update_stage_falsy(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.persistence.update_stage(id, UpdateStageInput(output_data=[], metrics={}, config=False, error_message=""))
    await w.persistence.update_stage(id, UpdateStageInput(metrics=None))
    s = await w.persistence.get_stage("r1", "s1")
    return (s.output_data, s.metrics, s.config, s.error_message), ([], None, False, "")


@example("get_stage", "the stage of the pair")
async def get_stage_found(w: World) -> Pair:
    id = await w.stage_record_id()
    return (await w.persistence.get_stage("r1", "s1")).id, id


@example("get_stage", "None for an unknown stage")
async def get_stage_none(w: World) -> Pair:
    await w.stage_record_id()
    return await w.persistence.get_stage("r1", "s2"), None


@example("get_stage", "None for an unknown run")
async def get_stage_no_run(w: World) -> Pair:
    return await w.persistence.get_stage("nope", "s1"), None


async def _three_stages(w: World) -> None:
    await w.persistence.create_run(run())
    await w.persistence.create_stage(stage(stage_id="b", execution_group=2, stage_number=1))
    await w.persistence.create_stage(stage(stage_id="c", execution_group=1, stage_number=2))
    await w.persistence.create_stage(stage(stage_id="a", execution_group=1, stage_number=1, status=Status.SKIPPED))


@example("get_stages_by_run", "by execution_group then stage_number")
async def stages_ascending(w: World) -> Pair:
    await _three_stages(w)
    return [s.stage_id for s in await w.persistence.get_stages_by_run("r1")], ["a", "c", "b"]


@example("get_stages_by_run", "both in that direction")
async def stages_descending(w: World) -> Pair:
    await _three_stages(w)
    return [s.stage_id for s in await w.persistence.get_stages_by_run("r1", order="desc")], ["b", "c", "a"]


@example("get_stages_by_run", "status is a filter")
async def stages_by_status(w: World) -> Pair:
    await _three_stages(w)
    return [s.stage_id for s in await w.persistence.get_stages_by_run("r1", Status.SKIPPED)], ["a"]


async def _suspended(w: World, run_id: str, stage_id: str, due: object, **fields: object) -> None:
    if await w.persistence.get_run(run_id) is None:
        await w.persistence.create_run(run(run_id, **fields))
    s = await w.persistence.create_stage(stage(run_id, stage_id))
    await w.persistence.update_stage(s.id, UpdateStageInput(status=Status.SUSPENDED, next_poll_at=due))  # pyright: ignore[reportArgumentType]  # an instant or None


@example("get_suspended_stages", "next_poll_at <= before; a null next_poll_at is never due; oldest next_poll_at first")
async def suspended_due(w: World) -> Pair:
    await _suspended(w, "r1", "at", START)
    await _suspended(w, "r1", "early", START - HOUR)
    await _suspended(w, "r1", "later", START + HOUR)
    await _suspended(w, "r1", "never", None)
    return [s.stage_id for s in await w.persistence.get_suspended_stages(START)], ["early", "at"]


@example("get_suspended_stages", "at most limit")
async def suspended_limit(w: World) -> Pair:
    await _suspended(w, "r1", "a", START)
    await _suspended(w, "r1", "b", START - HOUR)
    return [s.stage_id for s in await w.persistence.get_suspended_stages(START, limit=1)], ["b"]


@example("get_suspended_stages", "only stages of runs the caller serves")
async def suspended_serves(w: World) -> Pair:
    await _suspended(w, "r1", "a", START, definition_version="v1")
    await _suspended(w, "r2", "b", START, definition_version="v2")
    await _suspended(w, "r3", "c", START - HOUR)
    served = [ServedDefinition(workflow_id="w", version="v2")]
    some = [s.stage_id for s in await w.persistence.get_suspended_stages(START, serves=served)]
    none = await w.persistence.get_suspended_stages(START, serves=[])
    return (some, none), (["c", "b"], [])


@example("delete_stage", "its steps and logs go")
async def delete_stage_children(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.ledger.claim(step(id))
    await w.persistence.create_log(
        CreateLogInput(level=LogLevel.WARN, message="m", workflow_run_id="r1", workflow_stage_id=id)
    )
    await w.persistence.delete_stage(id)
    return (await w.ledger.list(id), (await w.operations.list_logs("r1")).items), ([], ())


@example("delete_stage", "annotations and artifacts stay with the reference cleared")
async def delete_stage_annotations(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.persistence.append_annotations([annotation(workflow_stage_record_id=id)])
    await w.persistence.delete_stage(id)
    [found] = await w.persistence.list_annotations("r1")
    return found.workflow_stage_record_id, None


@example("delete_stage", "Unknown id: no-op")
async def delete_stage_unknown(w: World) -> Pair:
    return await w.persistence.delete_stage("nope"), None


@example("create_log", "WorkflowLogRecord is what the operations read back")
async def log_stored(w: World) -> Pair:
    id = await w.stage_record_id()
    await w.persistence.create_log(
        CreateLogInput(
            level=LogLevel.ERROR, message="a\0b", workflow_run_id="r1", workflow_stage_id=id, metadata={"k": 1}
        )
    )
    [found] = (await w.operations.list_logs("r1")).items
    observed = (found.level, found.message, found.workflow_stage_id, found.metadata, found.created_at)
    return observed, (LogLevel.ERROR, "a\ufffdb", id, {"k": 1}, START)


@example("create_log", "A parent that does not exist is a NotFoundError naming the parent")
async def log_orphan(w: World) -> Pair:
    log = CreateLogInput(level=LogLevel.INFO, message="m", workflow_run_id="nope")
    return await error_of(w.persistence.create_log(log)), ("NotFoundError", "run", "nope")


@example("create_log", "an unknown stage too")
async def log_orphan_stage(w: World) -> Pair:
    await w.persistence.create_run(run())
    log = CreateLogInput(level=LogLevel.INFO, message="m", workflow_run_id="r1", workflow_stage_id="nope")
    return await error_of(w.persistence.create_log(log)), ("NotFoundError", "stage", "nope")


@example("create_log", "run and stage may be left out; returns None")
async def log_free(w: World) -> Pair:
    return await w.persistence.create_log(CreateLogInput(level=LogLevel.DEBUG, message="")), None


@example("append_annotations", "rows sharing (run, key, idempotency_key) are skipped, stored ones and inside the batch")
async def annotations_dedup(w: World) -> Pair:
    await w.persistence.create_run(run())
    batch = [annotation(value=v, idempotency_key="i") for v in (1, 2)]
    await w.persistence.append_annotations(batch)
    await w.persistence.append_annotations([annotation(value=3, idempotency_key="i")])
    return [a.value for a in await w.persistence.list_annotations("r1")], [1]


@example("append_annotations", "null keys never collide")
async def annotations_null_keys(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.append_annotations([annotation(value=1), annotation(value=1)])
    return len(await w.persistence.list_annotations("r1")), 2


@example("append_annotations", "one batch, all or nothing; a missing parent is a NotFoundError")
async def annotations_atomic(w: World) -> Pair:
    await w.persistence.create_run(run())
    failed = await error_of(w.persistence.append_annotations([annotation(), annotation(run_id="nope")]))
    return (failed, await w.persistence.list_annotations("r1")), (("NotFoundError", "run", "nope"), [])


@example("append_annotations", "Empty: no-op")
async def annotations_empty(w: World) -> Pair:
    return await w.persistence.append_annotations([]), None


@example("append_annotations", "emit_event is not stored; the actor's three fields are")
async def annotations_actor(w: World) -> Pair:
    await w.persistence.create_run(run())
    actor = AnnotationActor(kind="agent", id="a1")
    await w.persistence.append_annotations([annotation(actor=actor, emit_event=True, payload=None, scope_id="x")])
    [a] = await w.persistence.list_annotations("r1")
    return (a.actor_kind, a.actor_id, a.actor_version, a.payload, a.scope_id), ("agent", "a1", None, None, "x")


@example("list_annotations", "key_prefix is a literal, case-sensitive prefix; % _ and \\ mean themselves")
async def annotations_prefix(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.append_annotations([annotation(key) for key in ("a_b", "axb", "a%b", "a\\b", "A_b", "a_")])
    found = {}
    for prefix in ("a_", "a%", "a\\", ""):
        listed = await w.persistence.list_annotations("r1", AnnotationFilters(key_prefix=prefix))
        found[prefix] = [a.key for a in listed]
    everything = ["a_b", "axb", "a%b", "a\\b", "A_b", "a_"]
    return found, {"a_": ["a_b", "a_"], "a%": ["a%b"], "a\\": ["a\\b"], "": everything}


@example("list_annotations", "AND of all, bounds inclusive, by created_at then insertion order")
async def annotations_bounds(w: World) -> Pair:
    await w.persistence.create_run(run())
    for value in range(4):
        await w.persistence.append_annotations([annotation(value=value, attempt=value % 2)])
        w.clock.advance(MINUTE)
    within = AnnotationFilters(since=START + MINUTE, until=START + 3 * MINUTE, attempt=1)
    return [a.value for a in await w.persistence.list_annotations("r1", within)], [1, 3]


@example("list_annotations", "key wins over key_prefix; limit")
async def annotations_key_wins(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.append_annotations([annotation("k"), annotation("kk"), annotation("k")])
    filters = AnnotationFilters(key="k", key_prefix="kk", limit=1)
    return [a.key for a in await w.persistence.list_annotations("r1", filters)], ["k"]


@example("list_annotations", "left out means no filter; None means is null for a column that may be null")
async def annotations_null_filter(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.persistence.append_annotations([annotation(value=1), annotation(value=2, scope_id="x")])
    both = await w.persistence.list_annotations("r1", AnnotationFilters(scope=None))
    null = await w.persistence.list_annotations("r1", AnnotationFilters(scope_id=None))
    return ([a.value for a in both], [a.value for a in null]), ([1, 2], [1])
