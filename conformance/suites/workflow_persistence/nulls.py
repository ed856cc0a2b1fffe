"""Absent and null in patches, for every field that may be null: left out keeps it, None clears it, falsy is a value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from conformance.builders import stage
from conformance.clause import MUST, TIME_LIMIT_OF_MANY_CALLS, Need, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import new_run, new_stage, run_of, stage_of
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput, UpsertStageInput
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import Status

_Patch: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]
"""Applies a patch to the clause's row and gives the row as it is stored then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    number: int
    name: str
    value: Any
    falsy: tuple[Any, ...] = ()
    """Values that are not true and are not null either."""
    needs: tuple[Need, ...] = ()


_AT: Final = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
_FALSY_JSON: Final[tuple[JsonValue, ...]] = (0, 0.0, "", False, [], {})

_RUN_FIELDS: Final = (
    _Field(number=1, name="started_at", value=_AT),
    _Field(number=2, name="completed_at", value=_AT),
    _Field(number=3, name="duration", value=5, falsy=(0,)),
    _Field(number=4, name="output", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=5, name="definition_version", value="v1", needs=(Requires("definition_versions", "stored"),)),
)

_STAGE_FIELDS: Final = (
    _Field(number=11, name="started_at", value=_AT),
    _Field(number=12, name="completed_at", value=_AT),
    _Field(number=13, name="duration", value=5, falsy=(0,)),
    _Field(number=14, name="input_data", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=15, name="output_data", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=16, name="config", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=17, name="suspended_state", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=18, name="resume_data", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=19, name="next_poll_at", value=_AT),
    _Field(number=20, name="poll_interval", value=5, falsy=(0,)),
    _Field(number=21, name="max_wait_until", value=_AT),
    _Field(number=22, name="metrics", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=23, name="embedding_info", value={"a": 1}, falsy=_FALSY_JSON),
    _Field(number=24, name="error_message", value="broken", falsy=("",)),
)


async def _run_patch(ctx: Context[WorkflowPersistence]) -> _Patch:
    created = await new_run(ctx)

    async def patch(fields: dict[str, Any]) -> Any:
        await ctx.adapter.update_run(created.id, UpdateRunInput(**fields))
        return await run_of(ctx, created.id)

    return patch


async def _stage_patch(ctx: Context[WorkflowPersistence]) -> _Patch:
    created = await new_stage(ctx)

    async def patch(fields: dict[str, Any]) -> Any:
        await ctx.adapter.update_stage(created.id, UpdateStageInput(**fields))
        return await stage_of(ctx, created)

    return patch


async def _upsert_patch(ctx: Context[WorkflowPersistence]) -> _Patch:
    created = await new_stage(ctx)
    create = stage(created.workflow_run_id, created.stage_id)

    async def patch(fields: dict[str, Any]) -> Any:
        await ctx.adapter.upsert_stage(UpsertStageInput(create=create, update=UpdateStageInput(**fields)))
        return await stage_of(ctx, created)

    return patch


async def _try(ctx: Context[WorkflowPersistence], field: _Field, patch: _Patch) -> None:
    for value in (field.value, *field.falsy):
        found = getattr(await patch({field.name: value}), field.name)
        ctx.expect(f"{field.name} after a patch with {value!r}", found).equals(value)
        kept = getattr(await patch({"status": Status.RUNNING}), field.name)
        ctx.expect(f"{field.name} after a patch that leaves it out", kept).equals(value)
    cleared = getattr(await patch({field.name: None}), field.name)
    ctx.expect(f"{field.name} after a patch with None", cleared).is_none()


def _register(method: str, field: _Field, start: Callable[[Context[WorkflowPersistence]], Awaitable[_Patch]]) -> None:
    async def trial(ctx: Context[WorkflowPersistence]) -> None:
        await _try(ctx, field, await start(ctx))

    clause(
        f"WP-NULL-{field.number:02}",
        MUST,
        text=f"{method}: {field.name} is kept where the patch leaves it out, and cleared where it gives None.",
        why="A field that can not be cleared keeps stale state; one that is cleared unasked loses state.",
        hints=["UNSET is no None: COALESCE can not tell them apart.", "0, '', [], {} and False are values."],
        needs=field.needs,
        after=["WP-UPDATE-01" if method == "update_run" else "WP-STAGE-21"],
    )(trial)


for _field in _RUN_FIELDS:
    _register("update_run", _field, _run_patch)
for _field in _STAGE_FIELDS:
    _register("update_stage", _field, _stage_patch)


@clause(
    "WP-NULL-31",
    MUST,
    text="upsert_stage keeps and clears every field of a stored stage as update_stage does.",
    why="The engine updates stages through both; two rules for one column are a trap.",
    hints=["One function builds the SET list of both."],
    after=["WP-UPSERT-04"],
    time_limit=TIME_LIMIT_OF_MANY_CALLS,
)
async def upsert(ctx: Context[WorkflowPersistence]) -> None:
    patch = await _upsert_patch(ctx)
    for field in _STAGE_FIELDS:
        await _try(ctx, field, patch)


@clause(
    "WP-NULL-32",
    MUST,
    text="A falsy value of a field that can not be null is written: no cost, no tokens, attempt 0.",
    why="Resetting a counter would do nothing.",
    hints=["Test for UNSET, not for truth."],
    after=["WP-UPDATE-01", "WP-STAGE-21"],
)
async def falsy_counters(ctx: Context[WorkflowPersistence]) -> None:
    run_patch, stage_patch = await _run_patch(ctx), await _stage_patch(ctx)
    await run_patch({"total_cost": 2.5, "total_tokens": 7})
    after = await run_patch({"total_cost": 0.0, "total_tokens": 0})
    ctx.expect("total_cost", after.total_cost).equals(0.0)
    ctx.expect("total_tokens", after.total_tokens).equals(0)
    await stage_patch({"attempt": 3})
    ctx.expect("attempt", (await stage_patch({"attempt": 0})).attempt).equals(0)
