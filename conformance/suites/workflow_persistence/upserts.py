"""upsert_stage: create or update, in one statement."""

from __future__ import annotations

from functools import partial
from typing import Any

from conformance.builders import annotation, stage
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, new_stage, stage_of
from workflow_adapters.errors import NotFoundError, StaleVersionError
from workflow_adapters.inputs.stages import CreateStageInput, UpdateStageInput, UpsertStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status


def _input(create: CreateStageInput, **patch: Any) -> UpsertStageInput:
    return UpsertStageInput(create=create, update=UpdateStageInput(**patch))


def _again(stored: WorkflowStageRecord, **patch: Any) -> UpsertStageInput:
    return _input(stage(stored.workflow_run_id, stored.stage_id), **patch)


@clause(
    "WP-UPSERT-01",
    MUST,
    text="upsert_stage of a new pair creates the stage, RUNNING and started now unless it is told otherwise.",
    why="The engine upserts a stage as it starts it; one that is PENDING without a start is started again.",
    hints=["These defaults hold on this path only; create_stage has others."],
    after=["WP-STAGE-01"],
)
async def creates(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    returned = await ctx.adapter.upsert_stage(_input(stage(run_id, "build", attempt=2)))
    ctx.expect("status", returned.status).equals(Status.RUNNING)
    ctx.expect_now("started_at", returned.started_at)
    ctx.expect("version", returned.version).equals(1)
    ctx.expect("attempt", returned.attempt).equals(2)
    ctx.expect("the stored stage", await ctx.adapter.get_stage(run_id, "build")).equals(returned)


@clause(
    "WP-UPSERT-02",
    MUST,
    text="An explicit status and started_at of the new stage are kept, a started_at of None too.",
    why="A stage that is prepared but not started would look started.",
    hints=["UNSET is not None."],
    after=["WP-UPSERT-01"],
)
async def explicit_values(ctx: Context[WorkflowPersistence]) -> None:
    create = stage(await ctx.new_run(), status=Status.PENDING, started_at=None)
    returned = await ctx.adapter.upsert_stage(_input(create))
    ctx.expect("status", returned.status).equals(Status.PENDING)
    ctx.expect("started_at", returned.started_at).is_none()
    at = ctx.now() - HOUR
    returned = await ctx.adapter.upsert_stage(_input(stage(await ctx.new_run(), started_at=at)))
    ctx.expect("started_at", returned.started_at).equals(at)


@clause(
    "WP-UPSERT-03",
    MUST,
    text="The update's fields do not count when the stage is created.",
    why="A new stage would begin with the values of a second attempt.",
    hints=["INSERT takes create, ON CONFLICT DO UPDATE takes update."],
    after=["WP-UPSERT-01"],
)
async def update_is_not_applied_to_a_new_stage(ctx: Context[WorkflowPersistence]) -> None:
    create = stage(await ctx.new_run(), attempt=1)
    returned = await ctx.adapter.upsert_stage(_input(create, attempt=7, output_data=1, status=Status.FAILED))
    ctx.expect("attempt", returned.attempt).equals(1)
    ctx.expect("output_data", returned.output_data).is_none()
    ctx.expect("status", returned.status).equals(Status.RUNNING)


@clause(
    "WP-UPSERT-04",
    MUST,
    text="upsert_stage of a stored pair applies every field that `update` gives, raises the version, returns the row.",
    why="A retried stage must carry the new attempt, and writers of the old one must become stale.",
    hints=["version = version + 1 and updated_at on the update path too."],
    after=["WP-UPSERT-01", "WP-STAGE-03"],
)
async def updates(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx, config={"c": 1})
    await ctx.advance(MINUTE)
    patch: dict[str, Any] = {"status": Status.FAILED, "attempt": 2, "output_data": [1], "error_message": "broken"}
    returned = await ctx.adapter.upsert_stage(_again(stored, **patch))
    for name, value in patch.items():
        ctx.expect(name, getattr(returned, name)).equals(value)
    ctx.expect("version", returned.version).equals(2)
    ctx.expect_now("updated_at", returned.updated_at)
    ctx.expect("config, which was not given", returned.config).equals({"c": 1})
    ctx.expect("the stored stage", await stage_of(ctx, stored)).equals(returned)


@clause(
    "WP-UPSERT-05",
    MUST,
    text="A stored stage keeps its id and created_at through an upsert.",
    why="Steps, logs and annotations hang on the id; replacing the row cuts them off or deletes them.",
    hints=["INSERT OR REPLACE deletes the row: use ON CONFLICT DO UPDATE."],
    after=["WP-UPSERT-04"],
)
async def keeps_its_id(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    await ctx.advance(MINUTE)
    returned = await ctx.adapter.upsert_stage(_again(stored, attempt=1))
    ctx.expect("id", returned.id).equals(stored.id)
    ctx.expect("created_at", returned.created_at).equals(stored.created_at)


@clause(
    "WP-UPSERT-06",
    MUST,
    text="Children of a stored stage survive an upsert: its annotations still refer to it.",
    why="Every retry of a stage would lose what was noted about it.",
    hints=["REPLACE runs ON DELETE actions."],
    after=["WP-UPSERT-05", "WP-ANN-01"],
)
async def children_survive(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    given = annotation(stored.workflow_run_id, workflow_stage_record_id=stored.id)
    await ctx.adapter.append_annotations([given])
    await ctx.adapter.upsert_stage(_again(stored, attempt=1))
    listed = await ctx.adapter.list_annotations(stored.workflow_run_id)
    ctx.expect("stages of the annotations", [one.workflow_stage_record_id for one in listed]).equals([stored.id])


@clause(
    "WP-UPSERT-07",
    MUST,
    text="The fields of `create` do not count when the pair is stored.",
    why="A retry would reset the stage's status, attempt and input to those of a fresh one.",
    hints=["ON CONFLICT DO UPDATE SET names the update's fields only, not EXCLUDED."],
    after=["WP-UPSERT-04"],
)
async def create_is_not_applied_to_a_stored_stage(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx, stage_name="Old", attempt=1, input_data={"old": 1})
    other: dict[str, Any] = {"stage_name": "New", "attempt": 9, "input_data": {"new": 1}, "stage_number": 9}
    create = stage(stored.workflow_run_id, stored.stage_id, status=Status.SKIPPED, started_at=ctx.now(), **other)
    returned = await ctx.adapter.upsert_stage(_input(create, metrics={"m": 1}))
    for name in (*other, "status", "started_at"):
        ctx.expect(name, getattr(returned, name)).equals(getattr(stored, name))


@clause(
    "WP-UPSERT-08",
    MUST,
    text="An expected_version that does not match the stored stage raises StaleVersionError, and nothing is written.",
    why="Two hosts that retry one stage would both believe it is theirs.",
    hints=["ON CONFLICT DO UPDATE … WHERE version = the expected one; no row back means stale."],
    after=["WP-UPSERT-04"],
)
async def stale_version(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    with ctx.raises(StaleVersionError, "upsert_stage", expected=5, actual=1):
        await ctx.adapter.upsert_stage(_again(stored, attempt=1, expected_version=5))
    ctx.expect("the stored stage", await stage_of(ctx, stored)).equals(stored)
    returned = await ctx.adapter.upsert_stage(_again(stored, attempt=1, expected_version=1))
    ctx.expect("version after one that matches", returned.version).equals(2)


@clause(
    "WP-UPSERT-09",
    MUST,
    text="An expected_version is ignored when the stage is created.",
    why="There is nothing to compare with; the first start of a stage would fail.",
    hints=["The condition belongs to the update path."],
    after=["WP-UPSERT-01"],
)
async def no_version_to_compare(ctx: Context[WorkflowPersistence]) -> None:
    returned = await ctx.adapter.upsert_stage(_input(stage(await ctx.new_run()), expected_version=5))
    ctx.expect("version", returned.version).equals(1)


@clause(
    "WP-UPSERT-10",
    MUST,
    text="upsert_stage in a run that does not exist raises NotFoundError with the run's id.",
    why="A stage without a run is found by nothing and deleted by nothing.",
    hints=["As for create_stage."],
)
async def unknown_run(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("no-run")
    with ctx.raises(NotFoundError, "upsert_stage in an unknown run", id=run_id):
        await ctx.adapter.upsert_stage(_input(stage(run_id)))


@clause(
    "WP-UPSERT-11",
    MUST,
    text="Several upserts of one new pair at once make one stage; each of the others is an update of it.",
    why="A look before the insert fails, or makes two stages, when two hosts advance a run together.",
    hints=["One statement, on the unique key."],
    after=["WP-UPSERT-04"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    for _ in range(4):
        given = _input(stage(await ctx.new_run()), metrics={"m": 1})
        answers = await ctx.together(*(partial(adapter.upsert_stage, given) for adapter in adapters))
        ctx.expect("different ids", len({answer.id for answer in answers})).equals(1)
        versions = sorted(answer.version for answer in answers)
        ctx.expect("versions returned", versions).equals(list(range(1, len(adapters) + 1)))
