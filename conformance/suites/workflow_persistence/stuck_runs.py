"""get_stuck_runs: running runs that nothing has happened to."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from conformance.builders import run
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, MS, new_stage, run_in
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import Status

# Every instant here is one of the adapter's clock.
_CLOCK: Final = Requires("clock", "caller")


async def _stuck(ctx: Context[WorkflowPersistence], since: timedelta = timedelta(0)) -> list[str]:
    return [stuck.id for stuck in await ctx.adapter.get_stuck_runs(ctx.now() - since)]


@clause(
    "WP-STUCK-01",
    MUST,
    text="get_stuck_runs lists a RUNNING run whose updated_at lies at or before the given instant.",
    why="Runs of a host that died would never be found.",
    hints=["updated_at <= stuck_since, the instant included."],
    needs=[_CLOCK],
    after=["WP-UPDATE-04"],
)
async def stuck(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_in(ctx, Status.RUNNING)
    await ctx.advance(MINUTE)
    ctx.expect("stuck since that very instant", await _stuck(ctx, MINUTE)).equals([stored.id])
    ctx.expect("stuck since a millisecond before", await _stuck(ctx, MINUTE + MS)).is_empty()


@clause(
    "WP-STUCK-02",
    MUST,
    text="Only RUNNING runs are stuck.",
    why="Runs that wait or have ended would be restarted.",
    hints=["status = 'RUNNING', nothing else."],
    needs=[_CLOCK],
    after=["WP-STUCK-01"],
)
async def running_only(ctx: Context[WorkflowPersistence]) -> None:
    for status in Status:
        if status is not Status.RUNNING:
            await run_in(ctx, status)
    ctx.expect("stuck runs", await _stuck(ctx)).is_empty()


@clause(
    "WP-STUCK-03",
    MUST,
    text="A run with a stage that was updated after the given instant is not stuck.",
    why="A long run whose stages make progress would be taken for dead and run twice.",
    hints=["NOT EXISTS a stage with updated_at > stuck_since."],
    needs=[_CLOCK],
    after=["WP-STUCK-01", "WP-STAGE-01"],
)
async def a_stage_moves(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_in(ctx, Status.RUNNING)
    await new_stage(ctx, stored.id, "old")
    busy = await new_stage(ctx, stored.id, "busy")
    await ctx.advance(HOUR)
    await ctx.adapter.update_stage(busy.id, UpdateStageInput(status=Status.RUNNING))
    await ctx.advance(MINUTE)
    ctx.expect("stuck since before the stage's update", await _stuck(ctx, 2 * MINUTE)).is_empty()


@clause(
    "WP-STUCK-04",
    MUST,
    text="A run whose stages were all updated at or before the given instant is stuck.",
    why="A run that died inside a stage would never be found.",
    hints=["A stage stamped at the instant itself does not save the run: > is strict."],
    needs=[_CLOCK],
    after=["WP-STUCK-01", "WP-STAGE-01"],
)
async def no_stage_moves(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_in(ctx, Status.RUNNING)
    await new_stage(ctx, stored.id)
    ctx.expect("stuck since the stage's very instant", await _stuck(ctx)).equals([stored.id])


@clause(
    "WP-STUCK-05",
    MUST,
    text="Stages of other runs do not keep a run from being stuck.",
    why="On a busy system no run would ever be found.",
    hints=["The inner query is joined to the run."],
    needs=[_CLOCK],
    after=["WP-STUCK-04"],
)
async def stages_of_others(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_in(ctx, Status.RUNNING)
    since = ctx.now()
    await ctx.advance(MINUTE)
    await new_stage(ctx)
    found = [one.id for one in await ctx.adapter.get_stuck_runs(since)]
    ctx.expect("stuck runs", found).equals([stored.id])


@clause(
    "WP-STUCK-06",
    MUST,
    text="Stuck runs are listed by updated_at, then by id byte by byte.",
    why="The longest abandoned run is recovered first, the same on every adapter.",
    hints=['ORDER BY updated_at, id; with COLLATE "C" where the collation of the database is another.'],
    needs=[_CLOCK],
    after=["WP-STUCK-01"],
)
async def order(ctx: Context[WorkflowPersistence]) -> None:
    stem = ctx.new_id("run")
    ids = [f"{stem}{tail}" for tail in ("b", "B", "a")]
    first = await run_in(ctx, Status.RUNNING)
    await ctx.advance(MINUTE)
    for number, run_id in enumerate(ids):
        await ctx.adapter.create_run(run(id=run_id, priority=number))
        await ctx.adapter.update_run(run_id, UpdateRunInput(status=Status.RUNNING))
    await ctx.advance(MINUTE)
    ctx.expect("stuck runs", await _stuck(ctx)).equals([first.id, *sorted(ids)])


@clause(
    "WP-STUCK-07",
    MUST,
    text="The instant that stuck runs are looked for is cut off to the millisecond.",
    why="A finer instant would find what its own writer has just stamped.",
    hints=["Truncate instants that are compared, as those that are stored."],
    needs=[_CLOCK],
    after=["WP-STUCK-01"],
)
async def truncated(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_in(ctx, Status.RUNNING)
    just_before = stored.updated_at - timedelta(microseconds=1)
    ctx.expect("stuck since a microsecond before", await ctx.adapter.get_stuck_runs(just_before)).is_empty()
    just_after = stored.updated_at + timedelta(microseconds=999)
    ctx.expect("stuck since a microsecond after", await ctx.adapter.get_stuck_runs(just_after)).equals([stored])
