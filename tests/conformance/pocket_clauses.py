"""A registry of five small clauses for tests of the harness itself, so that they do not move with the real ones."""

from __future__ import annotations

from datetime import timedelta

from conformance.builders import step
from conformance.clause import MUST, SHOULD, Requires
from conformance.context import Context
from conformance.registry import Registry, clause
from workflow_adapters.inputs.step_ledger import StepRecordPatch
from workflow_adapters.ports.step_ledger import StepLedger, SupportsClearExcept

REGISTRY = Registry()
LIMIT = timedelta(seconds=2)


@clause(
    "SL-CLAIM-01",
    MUST,
    text="The first claim of a step creates it, and a second one does not.",
    why="A step would run twice.",
    hints=["Insert if absent."],
    time_limit=LIMIT,
    registry=REGISTRY,
)
async def claims_once(ctx: Context[StepLedger]) -> None:
    stage = await ctx.new_stage()
    first = await ctx.adapter.claim(step(stage))
    ctx.expect("created by the first claim", first.created).is_true()
    second = await ctx.adapter.claim(step(stage))
    ctx.expect("created by the second claim", second.created).is_false()
    ctx.expect_now("created_at", first.record.created_at)


@clause(
    "SL-CLAIM-02",
    MUST,
    text="Of racing claims exactly one creates the step.",
    why="Two workers would run it.",
    hints=["Is there a unique key?"],
    after=["SL-CLAIM-01"],
    time_limit=LIMIT,
    registry=REGISTRY,
)
async def one_of_two_creates(ctx: Context[StepLedger]) -> None:
    other = await ctx.second()
    stage = await ctx.new_stage()
    answers = await ctx.together(lambda: ctx.adapter.claim(step(stage)), lambda: other.claim(step(stage)))
    ctx.expect("creators", sum(answer.created for answer in answers)).equals(1)


@clause(
    "SL-LIST-01",
    MUST,
    text="A stage without steps has an empty list.",
    why="Hosts iterate over it.",
    hints=["Return [], not None."],
    time_limit=LIMIT,
    registry=REGISTRY,
)
async def lists_nothing(ctx: Context[StepLedger]) -> None:
    ctx.expect("list", await ctx.adapter.list(await ctx.new_stage())).equals([])


@clause(
    "SL-PATCH-01",
    SHOULD,
    text="An update moves updated_at.",
    why="Somebody may look at it.",
    hints=["Set it in the same statement."],
    after=["SL-CLAIM-01"],
    time_limit=LIMIT,
    registry=REGISTRY,
)
async def stamps_updates(ctx: Context[StepLedger]) -> None:
    stage = await ctx.new_stage()
    created = (await ctx.adapter.claim(step(stage))).record
    await ctx.advance(timedelta(seconds=1))
    updated = await ctx.adapter.update(stage, "step", StepRecordPatch(result=1))
    ctx.expect("updated_at", updated.updated_at).is_greater_than(created.updated_at)


@clause(
    "SL-KEEP-01",
    MUST,
    text="clear_except keeps what is named.",
    why="A replay needs it.",
    hints=["NOT IN, or the like."],
    needs=[SupportsClearExcept, Requires("durability", "process")],
    after=["SL-CLAIM-01"],
    time_limit=LIMIT,
    registry=REGISTRY,
)
async def keeps_what_is_named(ctx: Context[StepLedger]) -> None:
    stage = await ctx.new_stage()
    await ctx.adapter.claim(step(stage, "kept"))
    await ctx.adapter.claim(step(stage, "gone"))
    await ctx.capability(SupportsClearExcept).clear_except(stage, ["kept"])
    ctx.expect("steps", [record.step_id for record in await ctx.adapter.list(stage)]).equals(["kept"])
