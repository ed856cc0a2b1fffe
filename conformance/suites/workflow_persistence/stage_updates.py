"""update_stage and delete_stage."""

from __future__ import annotations

from functools import partial
from typing import Any

from conformance.builders import annotation
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, new_stage, run_of, stage_of, suspended_stage
from workflow_adapters.errors import NotFoundError, StaleVersionError
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import LogLevel, Status


@clause(
    "WP-STAGE-21",
    MUST,
    text="update_stage writes every field that the patch gives.",
    why="A field that is dropped loses output, or the state that a suspended stage is resumed from.",
    hints=["Build the SET list from the fields that are not UNSET."],
    after=["WP-STAGE-01"],
)
async def every_field(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    patch: dict[str, Any] = {
        "status": Status.SUSPENDED,
        "attempt": 3,
        "started_at": ctx.now() - HOUR,
        "completed_at": ctx.now() - MINUTE,
        "duration": 3_540_000,
        "input_data": {"in": 1},
        "output_data": {"out": 2},
        "config": {"c": 3},
        "suspended_state": {"s": 4},
        "resume_data": {"r": 5},
        "next_poll_at": ctx.now() + HOUR,
        "poll_interval": 60_000,
        "max_wait_until": ctx.now() + 2 * HOUR,
        "metrics": {"m": 6},
        "embedding_info": {"e": 7},
        "error_message": "broken",
    }
    await ctx.adapter.update_stage(stored.id, UpdateStageInput(**patch))
    after = await stage_of(ctx, stored)
    for name, value in patch.items():
        ctx.expect(name, getattr(after, name)).equals(value)


@clause(
    "WP-STAGE-22",
    MUST,
    text="Every update_stage raises the version by exactly one and sets updated_at, an empty patch too.",
    why="A suspended stage is claimed by its version; a write that hides lets two hosts resume it.",
    hints=["version and updated_at are in every SET list."],
    after=["WP-STAGE-04"],
)
async def version_and_stamp(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    for number, patch in enumerate((UpdateStageInput(status=Status.RUNNING), UpdateStageInput()), 2):
        await ctx.advance(MINUTE)
        await ctx.adapter.update_stage(stored.id, patch)
        after = await stage_of(ctx, stored)
        ctx.expect("version", after.version).equals(number)
        ctx.expect_now("updated_at", after.updated_at)
        ctx.expect("created_at", after.created_at).equals(stored.created_at)


@clause(
    "WP-STAGE-23",
    MUST,
    text="With another expected_version update_stage raises StaleVersionError with both versions and writes nothing.",
    why="Two hosts would both resume a suspended stage.",
    hints=["The version is in the WHERE of the UPDATE."],
    after=["WP-STAGE-22"],
)
async def stale_version(ctx: Context[WorkflowPersistence]) -> None:
    stored = await suspended_stage(ctx)
    for expected in (1, 3):
        with ctx.raises(StaleVersionError, "update_stage", id=stored.id, expected=expected, actual=2):
            patch = UpdateStageInput(status=Status.RUNNING, expected_version=expected)
            await ctx.adapter.update_stage(stored.id, patch)
        ctx.expect("the stored stage", await stage_of(ctx, stored)).equals(stored)
    await ctx.adapter.update_stage(stored.id, UpdateStageInput(status=Status.RUNNING, expected_version=2))
    ctx.expect("version after one that matches", (await stage_of(ctx, stored)).version).equals(3)


@clause(
    "WP-STAGE-24",
    MUST,
    text="update_stage of a stage that does not exist raises NotFoundError, with or without an expected_version.",
    why="The outcome of a stage would be written to nothing.",
    hints=["No row updated: look whether the stage exists to tell stale from missing."],
)
async def unknown(ctx: Context[WorkflowPersistence]) -> None:
    record_id = ctx.new_id("no-stage")
    for patch in (UpdateStageInput(status=Status.RUNNING), UpdateStageInput(expected_version=1)):
        with ctx.raises(NotFoundError, "update_stage of an unknown stage", id=record_id):
            await ctx.adapter.update_stage(record_id, patch)


@clause(
    "WP-STAGE-25",
    MUST,
    text="Of several updates of a stage at once that expect the same version, exactly one writes.",
    why="This is how a suspended stage is claimed: two winners resume it twice.",
    hints=["Compare and write in one statement; the row count tells."],
    after=["WP-STAGE-23"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    stored = await suspended_stage(ctx)
    for expected in range(stored.version, stored.version + 25):
        patch = UpdateStageInput(status=Status.RUNNING, expected_version=expected)
        answers = await ctx.settled(*(partial(adapter.update_stage, stored.id, patch) for adapter in adapters))
        ctx.expect("updates that wrote", sum(answer is None for answer in answers)).equals(1)
        wrong = [answer for answer in answers if not isinstance(answer, StaleVersionError | None)]
        ctx.expect("other errors than StaleVersionError", wrong).is_empty()


@clause(
    "WP-STAGE-26",
    MUST,
    text="update_stage changes the stage that it names: neither another one nor the run.",
    why="Writers of the run would be stale for reasons that are not theirs.",
    hints=["WHERE id = the stage."],
    after=["WP-STAGE-21"],
)
async def nothing_else(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    other = await new_stage(ctx, stored.workflow_run_id, "other")
    run = await run_of(ctx, stored.workflow_run_id)
    await ctx.adapter.update_stage(stored.id, UpdateStageInput(status=Status.FAILED))
    ctx.expect("the other stage", await stage_of(ctx, other)).equals(other)
    ctx.expect("the run", await run_of(ctx, run.id)).equals(run)


@clause(
    "WP-STAGE-27",
    MUST,
    text="Each status can be written to a stage and reads back as itself.",
    why="An enum of the database that lacks one fails on the one path that needs it.",
    hints=["Bind the enum's value; read it back as a Status."],
    after=["WP-STAGE-21"],
)
async def every_status(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    for status in Status:
        await ctx.adapter.update_stage(stored.id, UpdateStageInput(status=status))
        ctx.expect("status", (await stage_of(ctx, stored)).status).equals(status)


@clause(
    "WP-STAGE-31",
    MUST,
    text="delete_stage deletes the stage and no other of its run.",
    why="A rerun deletes what comes after its start, and must keep what came before.",
    hints=["WHERE id = the stage."],
    after=["WP-STAGE-01"],
)
async def deletes(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    other = await new_stage(ctx, stored.workflow_run_id, "other")
    await ctx.adapter.delete_stage(stored.id)
    ctx.expect("stages of the run", await ctx.adapter.get_stages_by_run(stored.workflow_run_id)).equals([other])


@clause(
    "WP-STAGE-32",
    MUST,
    text="delete_stage keeps the stage's annotations, their reference cleared.",
    why="What people noted about a run is lost by a rerun, or points at a stage that is not there.",
    hints=["ON DELETE SET NULL, enforced on every connection; SQLite needs the pragma."],
    after=["WP-STAGE-31", "WP-ANN-01"],
)
async def annotations_stay(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    other = await new_stage(ctx, stored.workflow_run_id, "other")
    given = [annotation(stored.workflow_run_id, workflow_stage_record_id=one.id) for one in (stored, other)]
    await ctx.adapter.append_annotations(given)
    await ctx.adapter.delete_stage(stored.id)
    listed = await ctx.adapter.list_annotations(stored.workflow_run_id)
    ctx.expect("stages of the annotations", [one.workflow_stage_record_id for one in listed]).equals([None, other.id])


@clause(
    "WP-STAGE-33",
    MUST,
    text="A stage that has logs can be deleted.",
    why="A foreign key without an action makes a rerun fail for every stage that ever logged.",
    hints=["ON DELETE CASCADE on the logs."],
    after=["WP-STAGE-31", "WP-LOG-01"],
)
async def logs_go(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    await ctx.adapter.create_log(CreateLogInput(level=LogLevel.INFO, message="x", workflow_stage_id=stored.id))
    await ctx.adapter.delete_stage(stored.id)
    found = await ctx.adapter.get_stage(stored.workflow_run_id, stored.stage_id)
    ctx.expect("the stage", found).is_none()


@clause(
    "WP-STAGE-34",
    MUST,
    text="delete_stage of a stage that does not exist changes nothing and raises nothing.",
    why="A rerun that is retried meets stages that it has deleted already.",
    hints=["No row deleted is no error here."],
)
async def delete_unknown(ctx: Context[WorkflowPersistence]) -> None:
    ctx.expect("delete_stage", await ctx.adapter.delete_stage(ctx.new_id("no-stage"))).is_none()
