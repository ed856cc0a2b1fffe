"""update and compare_and_set."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.step_ledger.scenes import HOUR, MINUTE, claimed, step_of
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.step_ledger import StepRecordExpectation, StepRecordPatch
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.records.status import StepStatus
from workflow_adapters.records.step_ledger import StepCas

_RUNNING: Final = StepRecordExpectation(status=StepStatus.RUNNING)
_DONE: Final = StepRecordPatch(status=StepStatus.COMPLETED, result="done")


@clause(
    "SL-UPDATE-01",
    MUST,
    text="update writes every field that the patch gives, and returns the row as it stands then.",
    why="A result that is not stored is computed again, with its side effects.",
    hints=["Build the SET list from the fields that are not UNSET."],
    after=["SL-CLAIM-01"],
)
async def every_field(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx)
    patch: dict[str, Any] = {
        "status": StepStatus.FAILED,
        "attempt": 4,
        "lease_expires_at": ctx.now() + MINUTE,
        "deadline_at": ctx.now() + HOUR,
        "result": {"r": 1},
        "error": "broken",
        "wait_state": {"w": 1},
    }
    returned = await ctx.adapter.update(stored.stage_record_id, stored.step_id, StepRecordPatch(**patch))
    for name, value in patch.items():
        ctx.expect(name, getattr(returned, name)).equals(value)
    ctx.expect("the stored step", await step_of(ctx, stored)).equals(returned)


@clause(
    "SL-UPDATE-02",
    MUST,
    text="update leaves alone what the patch does not give, seq, kind and external key among it.",
    why="A heartbeat of the lease would wipe out the state of a wait.",
    hints=["UNSET keeps the column."],
    after=["SL-UPDATE-01"],
)
async def the_rest_stays(ctx: Context[StepLedger]) -> None:
    fields: dict[str, Any] = {
        "lease_expires_at": ctx.now(),
        "deadline_at": ctx.now() + HOUR,
        "external_key": "key",
        "result": 1,
        "error": "old",
        "wait_state": {"w": 1},
        "attempt": 2,
        "seq": 5,
    }
    stored = await claimed(ctx, **fields)
    patch = StepRecordPatch(status=StepStatus.COMPLETED)
    returned = await ctx.adapter.update(stored.stage_record_id, stored.step_id, patch)
    for name in ("kind", "created_at", *fields):
        ctx.expect(name, getattr(returned, name)).equals(getattr(stored, name))


@clause(
    "SL-UPDATE-03",
    MUST,
    text="update sets updated_at to now and leaves created_at alone.",
    why="Steps that have made no progress are found by updated_at.",
    hints=["updated_at is in every SET list."],
    after=["SL-UPDATE-01"],
)
async def stamps(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx)
    await ctx.advance(MINUTE)
    returned = await ctx.adapter.update(stored.stage_record_id, stored.step_id, _DONE)
    ctx.expect_now("updated_at", returned.updated_at)
    ctx.expect("created_at", returned.created_at).equals(stored.created_at)


@clause(
    "SL-UPDATE-04",
    MUST,
    text="update of a step that is not there raises NotFoundError and creates nothing.",
    why="A result would be stored nowhere; a step created by an update has neither kind nor place.",
    hints=["No row back: NotFoundError."],
)
async def unknown(ctx: Context[StepLedger]) -> None:
    stage_record_id = await ctx.new_stage()
    with ctx.raises(NotFoundError, "update of an unknown step"):
        await ctx.adapter.update(stage_record_id, "step", _DONE)
    ctx.expect("steps of the stage", await ctx.adapter.list(stage_record_id)).is_empty()


@clause(
    "SL-UPDATE-05",
    MUST,
    text="update changes the step that it names and no other.",
    why="One step's result would be found under another's name.",
    hints=["Both the stage and the step are in the WHERE."],
    after=["SL-UPDATE-01"],
)
async def no_other_step(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx, None, "a")
    others = [await claimed(ctx, stored.stage_record_id, "b"), await claimed(ctx, None, "a")]
    await ctx.adapter.update(stored.stage_record_id, "a", _DONE)
    for other in others:
        ctx.expect("another step", await step_of(ctx, other)).equals(other)


@clause(
    "SL-CAS-01",
    MUST,
    text="compare_and_set of a step that is as expected applies the patch and returns the row as it stands then.",
    why="A worker that owns the step could not record its outcome.",
    hints=["One UPDATE with the expectation in its WHERE, RETURNING the row."],
    after=["SL-UPDATE-01"],
)
async def applies(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx, attempt=2, error="kept")
    await ctx.advance(MINUTE)
    expected = StepRecordExpectation(status=StepStatus.RUNNING, attempt=2)
    cas = await ctx.adapter.compare_and_set(stored.stage_record_id, stored.step_id, expected, _DONE)
    ctx.expect("applied", cas.applied).is_true()
    record = ctx.expect("the record", cas.record).is_not_none()
    ctx.expect("status and result", (record.status, record.result)).equals((StepStatus.COMPLETED, "done"))
    ctx.expect("error, which the patch leaves out", record.error).equals("kept")
    ctx.expect_now("updated_at", record.updated_at)
    ctx.expect("the stored step", await step_of(ctx, stored)).equals(record)


@clause(
    "SL-CAS-02",
    MUST,
    text="compare_and_set of a step in another status does not apply, changes nothing, and returns the row as it is.",
    why="A worker whose lease was lost would overwrite the result of its successor.",
    hints=["No row updated: read it, and say applied=False."],
    after=["SL-CAS-01"],
)
async def another_status(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx, status=StepStatus.PENDING)
    cas = await ctx.adapter.compare_and_set(stored.stage_record_id, stored.step_id, _RUNNING, _DONE)
    ctx.expect("the answer", cas).equals(StepCas(applied=False, record=stored))
    ctx.expect("the stored step", await step_of(ctx, stored)).equals(stored)


@clause(
    "SL-CAS-03",
    MUST,
    text="compare_and_set of a step in another attempt does not apply, though the status is as expected.",
    why="The attempt is the fence between two workers that both see the step running.",
    hints=["Both status and attempt are in the WHERE."],
    after=["SL-CAS-02"],
)
async def another_attempt(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx, attempt=2)
    for attempt in (1, 3):
        expected = StepRecordExpectation(status=StepStatus.RUNNING, attempt=attempt)
        cas = await ctx.adapter.compare_and_set(stored.stage_record_id, stored.step_id, expected, _DONE)
        ctx.expect("the answer", cas).equals(StepCas(applied=False, record=stored))


@clause(
    "SL-CAS-04",
    MUST,
    text="An expectation without an attempt matches any attempt.",
    why="A signal that arrives does not know which attempt waits for it.",
    hints=["UNSET is no condition; it is not attempt 0 or 1."],
    after=["SL-CAS-01"],
)
async def any_attempt(ctx: Context[StepLedger]) -> None:
    for attempt in (0, 1, 9):
        stored = await claimed(ctx, attempt=attempt)
        cas = await ctx.adapter.compare_and_set(stored.stage_record_id, stored.step_id, _RUNNING, _DONE)
        ctx.expect(f"applied at attempt {attempt}", cas.applied).is_true()


@clause(
    "SL-CAS-05",
    MUST,
    text="compare_and_set of a step that is not there does not apply, and its record is None.",
    why="A step that was cleared meanwhile is no error: its stage starts over.",
    hints=["No NotFoundError here, and nothing is created."],
)
async def no_step(ctx: Context[StepLedger]) -> None:
    stage_record_id = await ctx.new_stage()
    cas = await ctx.adapter.compare_and_set(stage_record_id, "step", _RUNNING, _DONE)
    ctx.expect("the answer", cas).equals(StepCas(applied=False, record=None))
    ctx.expect("steps of the stage", await ctx.adapter.list(stage_record_id)).is_empty()


@clause(
    "SL-CAS-06",
    MUST,
    text="Of several compare_and_set at once that expect the same, exactly one applies.",
    why="Two that are told they applied both go on with what follows from it.",
    hints=["Compare and write in one statement; the row count tells."],
    after=["SL-CAS-03"],
)
async def racing(ctx: Context[StepLedger]) -> None:
    ledgers = await ctx.instances(3) * 3
    stored = await claimed(ctx)
    for attempt in range(1, 6):
        expected = StepRecordExpectation(status=StepStatus.RUNNING, attempt=attempt)
        patches = [StepRecordPatch(attempt=attempt + 1, result=place) for place in range(len(ledgers))]
        answers = await ctx.together(
            *(
                partial(ledger.compare_and_set, stored.stage_record_id, stored.step_id, expected, patch)
                for ledger, patch in zip(ledgers, patches, strict=True)
            )
        )
        winners = [place for place, answer in enumerate(answers) if answer.applied]
        ctx.expect("answers that applied", winners).has_length(1)
        ctx.expect("result", (await step_of(ctx, stored)).result).equals(winners[0])
