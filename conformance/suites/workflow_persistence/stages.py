"""Creating and reading stages."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from conformance.builders import stage
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, new_stage, run_of, runs_alike, stage_of
from workflow_adapters.errors import AlreadyExistsError, NotFoundError
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status

_UNSET_AT_FIRST: Final = (
    "started_at",
    "completed_at",
    "duration",
    "input_data",
    "output_data",
    "config",
    "suspended_state",
    "resume_data",
    "next_poll_at",
    "poll_interval",
    "max_wait_until",
    "metrics",
    "embedding_info",
    "error_message",
)


@clause(
    "WP-STAGE-01",
    MUST,
    text="create_stage stores a PENDING stage of version 1 in its run, and returns it as it is stored.",
    why="A stage that starts in another status is skipped or run twice.",
    hints=["An unset status means PENDING here, and RUNNING in upsert_stage."],
    after=["WP-RUN-01"],
)
async def created(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    returned = await ctx.adapter.create_stage(stage(run_id, "build"))
    ctx.expect("run and stage", (returned.workflow_run_id, returned.stage_id)).equals((run_id, "build"))
    ctx.expect("status", returned.status).equals(Status.PENDING)
    ctx.expect("version", returned.version).equals(1)
    ctx.expect("the stored stage", await stage_of(ctx, returned)).equals(returned)


@clause(
    "WP-STAGE-02",
    MUST,
    text="A new stage has attempt 0, and None where nothing was given.",
    why="A stage that looks started, or poll-able, is picked up by the wrong loop.",
    hints=["started_at is not set by create_stage."],
    after=["WP-STAGE-01"],
)
async def defaults(ctx: Context[WorkflowPersistence]) -> None:
    stored = await stage_of(ctx, await new_stage(ctx))
    ctx.expect("attempt", stored.attempt).equals(0)
    for name in _UNSET_AT_FIRST:
        ctx.expect(name, getattr(stored, name)).is_none()


@clause(
    "WP-STAGE-03",
    MUST,
    text="A stage keeps every field that it was created with.",
    why="A column that is forgotten runs the stage in another place of the order or on other input.",
    hints=["Compare the insert's column list with CreateStageInput, field by field."],
    after=["WP-STAGE-01"],
)
async def every_field(ctx: Context[WorkflowPersistence]) -> None:
    fields: dict[str, Any] = {
        "stage_name": "Build it",
        "stage_number": 3,
        "execution_group": 2,
        "attempt": 4,
        "status": Status.SKIPPED,
        "started_at": ctx.now() - HOUR,
        "config": {"c": 1},
        "input_data": [1, 2],
    }
    stored = await stage_of(ctx, await new_stage(ctx, None, "build", **fields))
    for name, value in fields.items():
        ctx.expect(name, getattr(stored, name)).equals(value)


@clause(
    "WP-STAGE-04",
    MUST,
    text="created_at and updated_at of a new stage are the instant of the call, by the adapter's clock.",
    why="Whether a run is stuck is read from its stages' updated_at.",
    hints=["The adapter's Clock, also where the database has one."],
    after=["WP-STAGE-01"],
)
async def stamps(ctx: Context[WorkflowPersistence]) -> None:
    stored = await stage_of(ctx, await new_stage(ctx))
    ctx.expect_now("created_at", stored.created_at)
    ctx.expect_now("updated_at", stored.updated_at)


@clause(
    "WP-STAGE-05",
    MUST,
    text="create_stage in a run that does not exist raises NotFoundError with the run's id.",
    why="A stage without a run is found by nothing and deleted by nothing.",
    hints=["A foreign key, or INSERT … SELECT … FROM the run; translate to NotFoundError."],
)
async def unknown_run(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("no-run")
    with ctx.raises(NotFoundError, "create_stage in an unknown run", id=run_id):
        await ctx.adapter.create_stage(stage(run_id))
    ctx.expect("the stage", await ctx.adapter.get_stage(run_id, "stage")).is_none()


@clause(
    "WP-STAGE-06",
    MUST,
    text="create_stage of a pair that is taken raises AlreadyExistsError and leaves the stored stage alone.",
    why="A host that creates a stage twice would reset the one that is running.",
    hints=["A unique key on (run, stage); ON CONFLICT DO NOTHING and no row back."],
    after=["WP-STAGE-01"],
)
async def taken_pair(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    with ctx.raises(AlreadyExistsError, "create_stage of a taken pair"):
        await ctx.adapter.create_stage(stage(stored.workflow_run_id, stage_name="Another"))
    ctx.expect("the stored stage", await stage_of(ctx, stored)).equals(stored)


@clause(
    "WP-STAGE-07",
    MUST,
    text="Stages of one name in two runs are two stages.",
    why="A key on the name alone lets one run block every other.",
    hints=["The unique key is (workflow_run_id, stage_id)."],
    after=["WP-STAGE-01"],
)
async def the_run_is_part_of_the_key(ctx: Context[WorkflowPersistence]) -> None:
    first, second = await new_stage(ctx), await new_stage(ctx)
    ctx.expect("id of the second stage", second.id).differs_from(first.id)
    ctx.expect("the first stage", await stage_of(ctx, first)).equals(first)
    alike = [await new_stage(ctx, run_id, name) for run_id, name in await runs_alike(ctx)]
    for stored in alike:
        ctx.expect("the stage of a pair that another looks like", await stage_of(ctx, stored)).equals(stored)


@clause(
    "WP-STAGE-08",
    MUST,
    text="Of several calls that create one pair at once, exactly one succeeds and the others raise AlreadyExistsError.",
    why="Two hosts that advance one run would both start the stage.",
    hints=["The unique key decides, not a look before the insert."],
    after=["WP-STAGE-06"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    for _ in range(4):
        given = stage(await ctx.new_run())
        answers = await ctx.settled(*(partial(adapter.create_stage, given) for adapter in adapters))
        winners = [answer for answer in answers if isinstance(answer, WorkflowStageRecord)]
        ctx.expect("calls that succeeded", len(winners)).equals(1)
        wrong = [answer for answer in answers if not isinstance(answer, WorkflowStageRecord | AlreadyExistsError)]
        ctx.expect("other errors than AlreadyExistsError", wrong).is_empty()


@clause(
    "WP-STAGE-09",
    MUST,
    text="get_stage answers None for a pair that does not exist.",
    why="Asking is how hosts find out; an error would have to be told from a fault.",
    hints=["None, no exception, for an unknown run too."],
    after=["WP-STAGE-01"],
)
async def unknown_stage(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_stage(ctx)
    other = await ctx.adapter.get_stage(stored.workflow_run_id, "other")
    ctx.expect("an unknown stage of a run", other).is_none()
    ctx.expect("a stage of an unknown run", await ctx.adapter.get_stage(ctx.new_id("no-run"), "stage")).is_none()


async def _grid(ctx: Context[WorkflowPersistence]) -> str:
    """A run with four stages, named by group and number, created out of order."""
    run_id = await ctx.new_run()
    for group, number in ((2, 1), (10, 1), (1, 2), (1, 10)):
        name = f"{group}.{number}"
        await new_stage(ctx, run_id, name, execution_group=group, stage_number=number)
    return run_id


@clause(
    "WP-STAGE-10",
    MUST,
    text="get_stages_by_run lists a run's stages by execution group, then stage number, both descending on demand.",
    why="The engine advances group by group; one that sorts by number or by text skips work.",
    hints=["ORDER BY execution_group, stage_number; desc applies to both."],
    after=["WP-STAGE-03"],
)
async def order(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _grid(ctx)
    await new_stage(ctx)
    ascending = ["1.2", "1.10", "2.1", "10.1"]
    listed = [one.stage_id for one in await ctx.adapter.get_stages_by_run(run_id)]
    ctx.expect("stages by default", listed).equals(ascending)
    listed = [one.stage_id for one in await ctx.adapter.get_stages_by_run(run_id, order="asc")]
    ctx.expect("stages ascending", listed).equals(ascending)
    listed = [one.stage_id for one in await ctx.adapter.get_stages_by_run(run_id, order="desc")]
    ctx.expect("stages descending", listed).equals(ascending[::-1])


@clause(
    "WP-STAGE-11",
    MUST,
    text="get_stages_by_run with a status lists the stages in that status only, in the same order.",
    why="The engine asks for what is left to do.",
    hints=["No status is no filter."],
    after=["WP-STAGE-10", "WP-STAGE-21"],
)
async def by_status(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _grid(ctx)
    for one in await ctx.adapter.get_stages_by_run(run_id):
        if one.stage_id in ("10.1", "1.10"):
            await ctx.adapter.update_stage(one.id, UpdateStageInput(status=Status.FAILED))
    failed = [one.stage_id for one in await ctx.adapter.get_stages_by_run(run_id, Status.FAILED)]
    ctx.expect("failed stages", failed).equals(["1.10", "10.1"])
    ctx.expect("running stages", await ctx.adapter.get_stages_by_run(run_id, Status.RUNNING)).is_empty()


@clause(
    "WP-STAGE-12",
    MUST,
    text="Creating a stage does not touch its run: neither version nor updated_at.",
    why="Writers of the run would be stale for reasons that are not theirs.",
    hints=["One INSERT; a lock on the run's row is no update of it."],
    after=["WP-STAGE-01"],
)
async def the_run_is_untouched(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    before = await run_of(ctx, run_id)
    await ctx.advance(HOUR)
    await new_stage(ctx, run_id)
    ctx.expect("the run", await run_of(ctx, run_id)).equals(before)
