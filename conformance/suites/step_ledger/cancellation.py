"""Calls of the step ledger that are cancelled half-way."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from conformance.builders import step
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.interruption import Call, Ending, Look, cancel_everywhere
from conformance.suites.step_ledger.scenes import claimed
from workflow_adapters.inputs.step_ledger import StepRecordExpectation, StepRecordPatch
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.records.status import StepStatus


@clause(
    "SL-CANCELLATION-01",
    MUST,
    text="Cancelling a claim anywhere leaves the step or nothing, and the ledger usable.",
    why="A handler that is stopped between two steps must not leave a transaction open.",
    hints=["One owner for the span from BEGIN to COMMIT; its end is shielded."],
    after=["SL-CLAIM-05"],
    time_limit=timedelta(seconds=20),
)
async def cancelled(ctx: Context[StepLedger]) -> None:
    async def trial() -> tuple[Call, Look]:
        stage_record_id = await ctx.new_stage()

        async def look(ending: Ending) -> None:
            created = (await ctx.adapter.claim(step(stage_record_id))).created
            shown = f"created of the next claim, by {ending.by}"
            ctx.expect(shown, created).is_one_of(False, not ending.came_back)
            ctx.expect("steps", await ctx.adapter.list(stage_record_id)).has_length(1)

        return partial(ctx.adapter.claim, step(stage_record_id)), look

    await cancel_everywhere(trial)


@clause(
    "SL-CANCELLATION-02",
    MUST,
    text="Cancelling any other call of the port anywhere leaves the ledger usable.",
    why="One method that leaves a lock behind is enough: everybody waits for it.",
    hints=["One owner for the span from BEGIN to COMMIT; its end is shielded."],
    after=["SL-CANCELLATION-01", "SL-CAS-01", "SL-LIST-01", "SL-CLEAR-01"],
    time_limit=timedelta(seconds=20),
)
async def any_other_call(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx)
    names, expected = (stored.stage_record_id, stored.step_id), StepRecordExpectation(status=StepStatus.RUNNING)
    calls: tuple[Call, ...] = (
        partial(ctx.adapter.get, *names),
        partial(ctx.adapter.update, *names, StepRecordPatch()),
        partial(ctx.adapter.compare_and_set, *names, expected, StepRecordPatch()),
        partial(ctx.adapter.list, stored.stage_record_id),
        partial(ctx.adapter.clear, stored.stage_record_id),
    )

    async def look(ending: Ending) -> None:
        del ending
        await claimed(ctx)

    for call in calls:

        async def trial(tried: Call = call) -> tuple[Call, Look]:
            return tried, look

        await cancel_everywhere(trial)
