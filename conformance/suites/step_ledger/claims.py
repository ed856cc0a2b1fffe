"""claim: the first one to write a step wins."""

from __future__ import annotations

from functools import partial
from typing import Any

from conformance.builders import step
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.step_ledger.scenes import HOUR, MINUTE, claimed, step_of
from conformance.suites.values import ALIKE
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.records.status import StepKind, StepStatus


@clause(
    "SL-CLAIM-01",
    MUST,
    text="A claim of a step that is not there stores it, says created, and returns the row.",
    why="The step would be run by nobody, or by everybody.",
    hints=["INSERT … ON CONFLICT DO NOTHING RETURNING: a row back means created."],
)
async def created(ctx: Context[StepLedger]) -> None:
    stage_record_id = await ctx.new_stage()
    claim = await ctx.adapter.claim(step(stage_record_id, "fetch"))
    ctx.expect("created", claim.created).is_true()
    ctx.expect("stage and step", (claim.record.stage_record_id, claim.record.step_id)).equals(
        (stage_record_id, "fetch")
    )
    ctx.expect("the stored step", await ctx.adapter.get(stage_record_id, "fetch")).equals(claim.record)


@clause(
    "SL-CLAIM-02",
    MUST,
    text="A step keeps every field that it was claimed with.",
    why="A deadline, a lease or an external key that is forgotten makes the step wait for ever, or run twice.",
    hints=["Compare the insert's column list with NewStep, field by field."],
    after=["SL-CLAIM-01"],
)
async def every_field(ctx: Context[StepLedger]) -> None:
    fields: dict[str, Any] = {
        "seq": 7,
        "kind": StepKind.SIGNAL,
        "status": StepStatus.PENDING,
        "attempt": 3,
        "lease_expires_at": ctx.now() + MINUTE,
        "deadline_at": ctx.now() + HOUR,
        "external_key": "invoice-7",
        "result": {"r": [1]},
        "error": "broken",
        "wait_state": {"w": 1},
    }
    stored = await step_of(ctx, await claimed(ctx, None, "wait", **fields))
    for name, value in fields.items():
        ctx.expect(name, getattr(stored, name)).equals(value)


@clause(
    "SL-CLAIM-03",
    MUST,
    text="What a step was not given: attempt 1, and None for the rest.",
    why="A result that is not there must not read as one.",
    hints=["An absent result is None, and so is a result of None."],
    after=["SL-CLAIM-01"],
)
async def defaults(ctx: Context[StepLedger]) -> None:
    stored = await step_of(ctx, await claimed(ctx))
    ctx.expect("attempt", stored.attempt).equals(1)
    for name in ("lease_expires_at", "deadline_at", "external_key", "result", "error", "wait_state"):
        ctx.expect(name, getattr(stored, name)).is_none()


@clause(
    "SL-CLAIM-04",
    MUST,
    text="created_at and updated_at of a new step are the instant of the claim, by the adapter's clock.",
    why="How long a step has been waiting is read from them.",
    hints=["The adapter's Clock, also where the database has one."],
    after=["SL-CLAIM-01"],
)
async def stamps(ctx: Context[StepLedger]) -> None:
    stored = await step_of(ctx, await claimed(ctx))
    ctx.expect_now("created_at", stored.created_at)
    ctx.expect_now("updated_at", stored.updated_at)


@clause(
    "SL-CLAIM-05",
    MUST,
    text="A claim of a step that is there says so, changes nothing, and returns the row as it stands.",
    why="A replay must find the recorded result; overwritten, the step runs again with its side effects.",
    hints=["No row back from the insert: read the stored one.", "An upsert overwrites it."],
    after=["SL-CLAIM-01"],
)
async def the_first_wins(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx, status=StepStatus.COMPLETED, result={"first": True}, seq=1)
    await ctx.advance(MINUTE)
    again = step(stored.stage_record_id, seq=9, kind=StepKind.SLEEP, attempt=5, result={"second": True})
    claim = await ctx.adapter.claim(again)
    ctx.expect("created", claim.created).is_false()
    ctx.expect("the row returned", claim.record).equals(stored)
    ctx.expect("the stored step", await step_of(ctx, stored)).equals(stored)


@clause(
    "SL-CLAIM-06",
    MUST,
    text="Steps of one name in two stages, and of two names in one stage, are different steps.",
    why="One stage would find another's result.",
    hints=["The unique key is (stage_record_id, step_id)."],
    after=["SL-CLAIM-01"],
)
async def both_parts_of_the_key(ctx: Context[StepLedger]) -> None:
    first = await claimed(ctx, None, "a", result=1)
    named_otherwise = await claimed(ctx, first.stage_record_id, "b", result=2)
    elsewhere = await claimed(ctx, None, "a", result=3)
    ctx.expect("the first step", await step_of(ctx, first)).equals(first)
    ctx.expect("the step of another name", await step_of(ctx, named_otherwise)).equals(named_otherwise)
    ctx.expect("the step of another stage", await step_of(ctx, elsewhere)).equals(elsewhere)
    if ctx.may_name_stage():
        fresh = ctx.new_id("stage")
        alike = [await claimed(ctx, f"{fresh}{first}", second) for first, second in ALIKE]
        for stored in alike:
            ctx.expect("the step of a pair that another looks like", await step_of(ctx, stored)).equals(stored)


@clause(
    "SL-CLAIM-07",
    MUST,
    text="Of several claims of one step at once exactly one says created, and all return that one's row.",
    why="Each that is told created runs the step.",
    hints=["The unique key decides; the winner may have committed after the snapshot: read again."],
    after=["SL-CLAIM-05"],
)
async def racing(ctx: Context[StepLedger]) -> None:
    ledgers = await ctx.instances(3) * 3
    for _ in range(5):
        stage_record_id = await ctx.new_stage()
        steps = [step(stage_record_id, result=place) for place in range(len(ledgers))]
        claims = await ctx.together(
            *(partial(ledger.claim, given) for ledger, given in zip(ledgers, steps, strict=True))
        )
        winners = [place for place, claim in enumerate(claims) if claim.created]
        ctx.expect("claims that said created", winners).has_length(1)
        ctx.expect("results returned", [claim.record.result for claim in claims]).equals(winners * len(ledgers))


@clause(
    "SL-CLAIM-08",
    MUST,
    text="A claim in a stage that does not exist raises NotFoundError with the stage's id.",
    why="A step without a stage is found by nothing and deleted by nothing.",
    hints=["A foreign key; name the parent.", "A ledger that stands alone declares Parameters(parents='unchecked')."],
    needs=[Requires("parents", "checked")],
)
async def unknown_stage(ctx: Context[StepLedger]) -> None:
    stage_record_id = ctx.new_id("no-stage")
    with ctx.raises(NotFoundError, "claim in an unknown stage", id=stage_record_id):
        await ctx.adapter.claim(step(stage_record_id))
    ctx.expect("steps of the stage", await ctx.adapter.list(stage_record_id)).is_empty()


@clause(
    "SL-GET-01",
    MUST,
    text="get answers None for a step that is not there.",
    why="Asking is how a replay finds out what is left to do.",
    hints=["None, no exception, for an unknown stage too."],
    after=["SL-CLAIM-01"],
)
async def absent(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx)
    ctx.expect("another step of the stage", await ctx.adapter.get(stored.stage_record_id, "other")).is_none()
    ctx.expect("a step of an unknown stage", await ctx.adapter.get(ctx.new_id("no-stage"), "step")).is_none()


@clause(
    "SL-GET-02",
    MUST,
    text="A second adapter on the store sees a step as soon as claim has returned.",
    why="A stage is replayed by another process.",
    hints=["Commit before returning."],
    after=["SL-CLAIM-01"],
)
async def shared_store(ctx: Context[StepLedger]) -> None:
    other, stage_record_id = await ctx.second(), await ctx.new_stage()
    ctx.expect("a step that nobody has claimed", await other.get(stage_record_id, "step")).is_none()
    stored = await claimed(ctx, stage_record_id)
    ctx.expect("the step as the other sees it", await other.get(stored.stage_record_id, stored.step_id)).equals(stored)
