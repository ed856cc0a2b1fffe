"""get_suspended_stages: stages that wait and are due."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import (
    HOUR,
    MINUTE,
    MS,
    new_run,
    new_stage,
    served,
    stage_of,
    suspended_stage,
)
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status

_VERSIONS: Final = Requires("definition_versions", "stored")


async def _due(ctx: Context[WorkflowPersistence], limit: int | None = None, serves: Serves = None) -> list[str]:
    return [one.id for one in await ctx.adapter.get_suspended_stages(ctx.now(), limit, serves)]


@clause(
    "WP-SUSPENDED-01",
    MUST,
    text="get_suspended_stages lists SUSPENDED stages whose next_poll_at lies at or before the given instant.",
    why="Stages that wait for the outside world would never be looked at again.",
    hints=["next_poll_at <= before, the instant included."],
    after=["WP-STAGE-21"],
)
async def due(ctx: Context[WorkflowPersistence]) -> None:
    at = ctx.now()
    stored = await suspended_stage(ctx, next_poll_at=at)
    ctx.expect("due at that very instant", await ctx.adapter.get_suspended_stages(at)).equals([stored])
    ctx.expect("due a millisecond before", await ctx.adapter.get_suspended_stages(at - MS)).is_empty()


@clause(
    "WP-SUSPENDED-02",
    MUST,
    text="A SUSPENDED stage without next_poll_at is never due.",
    why="It waits for a signal; a poll would resume it without what it waits for.",
    hints=["No COALESCE on next_poll_at."],
    after=["WP-SUSPENDED-01"],
)
async def without_an_instant(ctx: Context[WorkflowPersistence]) -> None:
    await suspended_stage(ctx)
    ctx.expect("due stages", await _due(ctx)).is_empty()


@clause(
    "WP-SUSPENDED-03",
    MUST,
    text="Only SUSPENDED stages are listed, whatever next_poll_at others still carry.",
    why="A finished stage keeps its old next_poll_at, and would be polled for ever.",
    hints=["status = 'SUSPENDED', nothing else."],
    after=["WP-SUSPENDED-01", "WP-STAGE-27"],
)
async def suspended_only(ctx: Context[WorkflowPersistence]) -> None:
    for status in Status:
        if status is not Status.SUSPENDED:
            stored = await new_stage(ctx)
            await ctx.adapter.update_stage(stored.id, UpdateStageInput(status=status, next_poll_at=ctx.now() - HOUR))
    ctx.expect("due stages", await _due(ctx)).is_empty()


@clause(
    "WP-SUSPENDED-04",
    MUST,
    text="The stage that has been due longest is listed first, and a limit keeps the first ones.",
    why="With another order, or a limit before it, some stages are never polled under load.",
    hints=["ORDER BY next_poll_at LIMIT n; no limit lists all."],
    after=["WP-SUSPENDED-01"],
)
async def order_and_limit(ctx: Context[WorkflowPersistence]) -> None:
    ages = (3, 5, 1, 4, 2)
    ids = {age: (await suspended_stage(ctx, next_poll_at=ctx.now() - age * MINUTE)).id for age in ages}
    expected = [ids[age] for age in (5, 4, 3, 2, 1)]
    ctx.expect("due stages", await _due(ctx)).equals(expected)
    ctx.expect("due stages with a limit of 2", await _due(ctx, 2)).equals(expected[:2])
    ctx.expect("due stages with a limit of 0", await _due(ctx, 0)).is_empty()


@clause(
    "WP-SUSPENDED-05",
    MUST,
    text="Listing suspended stages changes nothing: the same ones are listed again, at the same version.",
    why="The claim is update_stage with expected_version; a read that writes makes that version stale.",
    hints=["A plain SELECT."],
    after=["WP-SUSPENDED-01"],
)
async def a_plain_read(ctx: Context[WorkflowPersistence]) -> None:
    stored = await suspended_stage(ctx, next_poll_at=ctx.now() - HOUR)
    for _ in range(2):
        ctx.expect("due stages", await _due(ctx)).equals([stored.id])
    ctx.expect("the stored stage", await stage_of(ctx, stored)).equals(stored)


async def _waiting(
    ctx: Context[WorkflowPersistence], workflow_id: str, version: str | None = None
) -> WorkflowStageRecord:
    run = await new_run(ctx, workflow_id=workflow_id, definition_version=version)
    return await suspended_stage(ctx, run.id, next_poll_at=ctx.now() - HOUR)


@clause(
    "WP-SUSPENDED-06",
    MUST,
    text="Only stages of runs that the caller serves are listed, by the rule of the claim of runs.",
    why="A host that lacks the workflow would fail the stage.",
    hints=["Join the run; compare (workflow_id, definition_version) as pairs."],
    needs=[_VERSIONS],
    after=["WP-SUSPENDED-01", "WP-RUN-11"],
)
async def serves(ctx: Context[WorkflowPersistence]) -> None:
    a, a1, a2, b = [
        (await _waiting(ctx, name, version)).id
        for name, version in (("a", None), ("a", "v1"), ("a", "v2"), ("b", None))
    ]
    ctx.expect("for a@v1", sorted(await _due(ctx, serves=[served("a", "v1")]))).equals(sorted([a, a1]))
    ctx.expect("for a@v9", await _due(ctx, serves=[served("a", "v9")])).equals([a])
    mixed = [served("a", "v1"), served("b", "v2")]
    ctx.expect("for a@v1 and b@v2", sorted(await _due(ctx, serves=mixed))).equals(sorted([a, a1, b]))
    ctx.expect("for nobody", await _due(ctx, serves=[])).is_empty()
    ctx.expect("for anybody", sorted(await _due(ctx, serves="all"))).equals(sorted([a, a1, a2, b]))


@clause(
    "WP-SUSPENDED-07",
    MUST,
    text="A limit counts the stages that the caller serves, not those that are passed over.",
    why="A page full of foreign stages would hide the caller's own for ever.",
    hints=["Filter before LIMIT."],
    needs=[_VERSIONS],
    after=["WP-SUSPENDED-06", "WP-SUSPENDED-04"],
)
async def limit_after_serves(ctx: Context[WorkflowPersistence]) -> None:
    for _ in range(5):
        await _waiting(ctx, "other")
    run = await new_run(ctx, workflow_id="mine")
    mine = await suspended_stage(ctx, run.id, next_poll_at=ctx.now() - MINUTE)
    ctx.expect("due stages with a limit of 1", await _due(ctx, 1, [served("mine")])).equals([mine.id])


@clause(
    "WP-SUSPENDED-08",
    MUST,
    text="The instant that stages are looked for is cut off to the millisecond.",
    why="Stored instants are; a comparison with a finer one differs between adapters.",
    hints=["Truncate instants that are compared, as those that are stored."],
    after=["WP-SUSPENDED-01"],
)
async def truncated(ctx: Context[WorkflowPersistence]) -> None:
    at = ctx.now()
    await suspended_stage(ctx, next_poll_at=at)
    found = await ctx.adapter.get_suspended_stages(at - timedelta(microseconds=1))
    ctx.expect("due a microsecond before", found).is_empty()


@clause(
    "WP-SUSPENDED-09",
    MUST,
    text="Without the versioning columns serves is ignored, an empty one too.",
    why="Nothing on such a database says whose a run is; filtering would leave all stages waiting.",
    hints=["serves counts for nothing there."],
    needs=[Requires("definition_versions", "absent")],
    after=["WP-SUSPENDED-01"],
)
async def serves_is_ignored(ctx: Context[WorkflowPersistence]) -> None:
    stored = await suspended_stage(ctx, next_poll_at=ctx.now() - HOUR)
    for given in ([], [served("other")]):
        ctx.expect("due stages", await _due(ctx, serves=given)).equals([stored.id])
