"""Nulls, instants, texts, keys, numbers and JSON in the step ledger; calls that are cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.json_columns import JsonColumn, JsonFamily, Read
from conformance.suites.step_ledger.scenes import claimed, step_of
from conformance.suites.values import BAD_KEYS, GOOD_KEYS, INSTANTS, STRINGS, UNSTORABLE_TEXTS, expect_instant
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.step_ledger import StepRecordExpectation, StepRecordPatch
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.records.status import StepKind, StepStatus

_AT: Final = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    number: int
    name: str
    value: Any
    falsy: tuple[JsonValue, ...] = ()
    """Values that are not true and are not null either."""


_FIELDS: Final = (
    _Field(number=1, name="lease_expires_at", value=_AT),
    _Field(number=2, name="deadline_at", value=_AT),
    _Field(number=3, name="result", value={"a": 1}, falsy=(0, 0.0, "", False, [], {})),
    _Field(number=4, name="error", value="broken", falsy=("",)),
    _Field(number=5, name="wait_state", value={"a": 1}, falsy=({},)),
)


def _register_null(field: _Field) -> None:
    async def trial(ctx: Context[StepLedger]) -> None:
        stored = await claimed(ctx)

        async def patched(**fields: Any) -> Any:
            await ctx.adapter.update(stored.stage_record_id, stored.step_id, StepRecordPatch(**fields))
            return getattr(await step_of(ctx, stored), field.name)

        for value in (field.value, *field.falsy):
            ctx.expect(f"{field.name} after a patch with {value!r}", await patched(**{field.name: value})).equals(value)
            kept = await patched(attempt=2)
            ctx.expect(f"{field.name} after a patch that leaves it out", kept).equals(value)
        ctx.expect(f"{field.name} after a patch with None", await patched(**{field.name: None})).is_none()

    clause(
        f"SL-NULL-{field.number:02}",
        MUST,
        text=f"{field.name} is kept where the patch leaves it out, and cleared where it gives None.",
        why="A lease or an error that can not be cleared lets a step look held, or failed, for ever.",
        hints=["UNSET is no None: COALESCE can not tell them apart.", "0, '', [], {} and False are values."],
        after=["SL-UPDATE-01"],
    )(trial)


for _field in _FIELDS:
    _register_null(_field)


@clause(
    "SL-TIME-01",
    MUST,
    text="Instants of any zone and of the years 1 to 9999 come back as the same instants, in UTC.",
    why="Columns without a zone shift a deadline by the session's.",
    hints=["Convert to UTC before binding, and mark as UTC after reading."],
    after=["SL-CLAIM-02", "SL-UPDATE-01"],
)
async def any_instant(ctx: Context[StepLedger]) -> None:
    for shown, at in INSTANTS.items():
        stored = await step_of(ctx, await claimed(ctx, lease_expires_at=at))
        expect_instant(ctx, f"lease_expires_at of {shown}", stored.lease_expires_at, at)
        patch = StepRecordPatch(deadline_at=at)
        returned = await ctx.adapter.update(stored.stage_record_id, stored.step_id, patch)
        expect_instant(ctx, f"deadline_at of {shown}", returned.deadline_at, at)


@clause(
    "SL-TEXT-01",
    MUST,
    text="An error text is stored character by character; U+0000 and lone surrogates in it become U+FFFD.",
    why="Recording a failure must not itself fail.",
    hints=["No length limit; '' is not NULL."],
    after=["SL-UPDATE-01"],
)
async def any_text(ctx: Context[StepLedger]) -> None:
    stored = await claimed(ctx)
    texts = {text: text for text in (*STRINGS.values(), "", "long " * 200_000)}
    for given, kept in {**texts, **dict(UNSTORABLE_TEXTS.values())}.items():
        await ctx.adapter.update(stored.stage_record_id, stored.step_id, StepRecordPatch(error=given))
        ctx.expect("error", (await step_of(ctx, stored)).error).equals(kept)


@clause(
    "SL-TEXT-02",
    MUST,
    text="Step ids and external keys are any texts up to 800 bytes, and come back as they are.",
    why="Step ids are made of names and arguments; two that are folded into one share a result.",
    hints=["Bind values; no collation that folds case or accents."],
    after=["SL-CLAIM-02"],
)
async def any_key(ctx: Context[StepLedger]) -> None:
    stage_record_id = await ctx.new_stage()
    for name in GOOD_KEYS:
        stored = await step_of(ctx, await claimed(ctx, stage_record_id, name, external_key=name))
        ctx.expect("step_id and external_key", (stored.step_id, stored.external_key)).equals((name, name))
    listed = [one.step_id for one in await ctx.adapter.list(stage_record_id)]
    ctx.expect("steps listed", listed).equals(sorted(GOOD_KEYS, key=str.encode))


@clause(
    "SL-TEXT-03",
    MUST,
    text="Ids that are empty, hold U+0000 or a lone surrogate, or exceed 800 bytes are refused by every method.",
    why="Where one adapter refuses and another finds nothing, a host works on one database and fails on the next.",
    hints=["Raise InvalidValueError naming the argument, before the first statement."],
)
async def bad_keys(ctx: Context[StepLedger]) -> None:
    expected = StepRecordExpectation(status=StepStatus.RUNNING)
    calls: dict[str, tuple[str, Callable[[str], Awaitable[Any]]]] = {
        "get": ("step_id", lambda bad: ctx.adapter.get("s", bad)),
        "update": ("stage_record_id", lambda bad: ctx.adapter.update(bad, "a", StepRecordPatch())),
        "compare_and_set": ("step_id", lambda bad: ctx.adapter.compare_and_set("s", bad, expected, StepRecordPatch())),
        "list": ("stage_record_id", ctx.adapter.list),
        "clear": ("stage_record_id", ctx.adapter.clear),
    }
    for shown, bad in BAD_KEYS.items():
        for method, (field, call) in calls.items():
            with ctx.raises(InvalidValueError, f"{method} with {shown}", field=field):
                await call(bad)


@clause(
    "SL-INT-01",
    MUST,
    text="seq and attempt have the whole range of 32 bits.",
    why="A narrower column changes the order of steps at its edge.",
    hints=["32-bit integer columns, or wider."],
    after=["SL-CLAIM-02"],
)
async def integers(ctx: Context[StepLedger]) -> None:
    for value in (-(2**31), 2**31 - 1):
        stored = await step_of(ctx, await claimed(ctx, seq=value, attempt=value))
        ctx.expect("seq and attempt", (stored.seq, stored.attempt)).equals((value, value))


@clause(
    "SL-INT-02",
    MUST,
    text="Every kind and every status of a step is stored and read back as itself.",
    why="A kind that reads as a text is none of the cases that a host handles.",
    hints=["Bind the enum's value; read it back as StepKind and StepStatus."],
    after=["SL-CLAIM-02", "SL-UPDATE-01"],
)
async def kinds_and_statuses(ctx: Context[StepLedger]) -> None:
    for kind in StepKind:
        for status in StepStatus:
            stored = await step_of(ctx, await claimed(ctx, kind=kind, status=status))
            ctx.expect("kind and status", (stored.kind, stored.status)).equals((kind, status))
            patch = StepRecordPatch(status=StepStatus.FAILED)
            returned = await ctx.adapter.update(stored.stage_record_id, stored.step_id, patch)
            ctx.expect("status after a patch", returned.status).equals(StepStatus.FAILED)


def _claimed_with(name: str) -> Callable[[Context[StepLedger], Any], Awaitable[Read]]:
    async def store(ctx: Context[StepLedger], value: Any) -> Read:
        stored = await claimed(ctx, **{name: value})

        async def read() -> JsonValue:
            return getattr(await step_of(ctx, stored), name)

        return read

    return store


async def _patched_result(ctx: Context[StepLedger], value: Any) -> Read:
    stored = await claimed(ctx)
    await ctx.adapter.update(stored.stage_record_id, stored.step_id, StepRecordPatch(result=value))

    async def read() -> JsonValue:
        return (await step_of(ctx, stored)).result

    return read


JsonFamily(
    prefix="SL-JSON",
    columns=[
        JsonColumn(name="result of a claim", store=_claimed_with("result")),
        JsonColumn(name="result of an update", store=_patched_result),
        JsonColumn(name="wait_state", store=_claimed_with("wait_state"), objects_only=True),
    ],
    after=["SL-CLAIM-02", "SL-UPDATE-01"],
).register()
