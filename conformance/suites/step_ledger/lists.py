"""Listing and clearing the steps of a stage."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.step_ledger.scenes import claimed, step_of
from workflow_adapters.ports.step_ledger import StepLedger, SupportsClearExcept

_NEEDS: Final = (SupportsClearExcept,)


async def _ids(ctx: Context[StepLedger], stage_record_id: str) -> list[str]:
    return [one.step_id for one in await ctx.adapter.list(stage_record_id)]


@clause(
    "SL-LIST-01",
    MUST,
    text="list gives the steps of the stage, and of no other, by seq as a number.",
    why="A replay goes through the steps in this order.",
    hints=["ORDER BY seq, step_id."],
    after=["SL-CLAIM-02"],
)
async def by_seq(ctx: Context[StepLedger]) -> None:
    stage_record_id = await ctx.new_stage()
    for seq in (10, 2, -1, 1):
        await claimed(ctx, stage_record_id, f"step-{seq}", seq=seq)
    await claimed(ctx, None, "other")
    ctx.expect("steps", await _ids(ctx, stage_record_id)).equals(["step--1", "step-1", "step-2", "step-10"])


@clause(
    "SL-LIST-02",
    MUST,
    text="Steps of one seq are listed by id, byte by byte.",
    why="Parallel steps share a seq; each adapter must give them in the same order.",
    hints=['COLLATE "C" where the collation of the database is another.'],
    after=["SL-LIST-01"],
)
async def by_id(ctx: Context[StepLedger]) -> None:
    stage_record_id = await ctx.new_stage()
    ids = ["b", "\u00e9", "a", "B", "_", "10", "9"]
    for step_id in ids:
        await claimed(ctx, stage_record_id, step_id)
    ctx.expect("steps", await _ids(ctx, stage_record_id)).equals(sorted(ids))


@clause(
    "SL-LIST-03",
    MUST,
    text="list gives whole rows, and no rows for a stage without steps.",
    why="The replay reads results from it; a second read per step is slow and sees other rows.",
    hints=["An empty list, not an error, for an unknown stage."],
    after=["SL-CLAIM-02"],
)
async def rows(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx, result={"r": 1}, error="e", wait_state={"w": 1}, external_key="k")
    ctx.expect("steps", await ctx.adapter.list(stored.stage_record_id)).equals([stored])
    ctx.expect("steps of an unknown stage", await ctx.adapter.list(ctx.new_id("no-stage"))).is_empty()


@clause(
    "SL-CLEAR-01",
    MUST,
    text="clear deletes every step of the stage and none of another.",
    why="A stage that starts over would find results of its last life; or another would lose its own.",
    hints=["WHERE stage_record_id = the stage."],
    after=["SL-LIST-01"],
)
async def clear(ctx: Context[StepLedger]) -> None:
    first = await claimed(ctx, None, "a")
    await claimed(ctx, first.stage_record_id, "b")
    other = await claimed(ctx, None, "a")
    await ctx.adapter.clear(first.stage_record_id)
    ctx.expect("steps", await _ids(ctx, first.stage_record_id)).is_empty()
    ctx.expect("the other stage's step", await step_of(ctx, other)).equals(other)


@clause(
    "SL-CLEAR-02",
    MUST,
    text="A step that was cleared can be claimed anew.",
    why="The stage could not run again.",
    hints=["Delete the rows; do not mark them."],
    after=["SL-CLEAR-01"],
)
async def claimed_anew(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx, result=1)
    await ctx.adapter.clear(stored.stage_record_id)
    again = await claimed(ctx, stored.stage_record_id, stored.step_id)
    ctx.expect("result of the new step", again.result).is_none()


@clause(
    "SL-CLEAR-03",
    MUST,
    text="clear of a stage without steps does nothing.",
    why="A stage is cleared before its first step, too.",
    hints=["No row deleted is no error."],
)
async def nothing_to_clear(ctx: Context[StepLedger]) -> None:
    ctx.expect("clear", await ctx.adapter.clear(await ctx.new_stage())).is_none()


@clause(
    "SL-EXCEPT-01",
    MUST,
    text="clear_except deletes the stage's steps but the named ones, which stay as they are.",
    why="A workflow that changed keeps what still fits; the wrong half would be lost.",
    hints=["NOT IN the given ids; unknown ids do not matter."],
    needs=_NEEDS,
    after=["SL-CLEAR-01"],
)
async def keeps(ctx: Context[StepLedger]) -> None:
    kept = await claimed(ctx, None, "b", result=1)
    for step_id in ("a", "c", "B"):
        await claimed(ctx, kept.stage_record_id, step_id)
    other = await claimed(ctx, None, "a")
    await ctx.capability(SupportsClearExcept).clear_except(kept.stage_record_id, ["b", "unknown"])
    ctx.expect("steps", await ctx.adapter.list(kept.stage_record_id)).equals([kept])
    ctx.expect("the other stage's step", await step_of(ctx, other)).equals(other)


@clause(
    "SL-EXCEPT-02",
    MUST,
    text="clear_except with nothing to keep clears everything.",
    why="An empty list that reads as no filter keeps all results of a workflow that was replaced.",
    hints=["NOT IN () is no SQL, and NULL in a NOT IN matches nothing."],
    needs=_NEEDS,
    after=["SL-CLEAR-01"],
)
async def keeps_nothing(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx)
    await ctx.capability(SupportsClearExcept).clear_except(stored.stage_record_id, [])
    ctx.expect("steps", await _ids(ctx, stored.stage_record_id)).is_empty()


@clause(
    "SL-EXCEPT-03",
    MUST,
    text="clear_except takes 5,000 ids.",
    why="Long workflows have thousands of steps; databases limit the parameters of a statement.",
    hints=["Pass one array."],
    needs=_NEEDS,
    after=["SL-EXCEPT-01"],
    time_limit=timedelta(seconds=15),
)
async def many_ids(ctx: Context[StepLedger]) -> None:
    stage_record_id = await ctx.new_stage()
    for step_id in ("step-0", "step-4999", "other"):
        await claimed(ctx, stage_record_id, step_id)
    keep = [f"step-{number}" for number in range(5_000)]
    await ctx.capability(SupportsClearExcept).clear_except(stage_record_id, keep)
    ctx.expect("steps", await _ids(ctx, stage_record_id)).equals(["step-0", "step-4999"])
