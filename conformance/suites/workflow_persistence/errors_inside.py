"""Errors of ours, and conflicts that are none, inside a transaction: it goes on and commits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from conformance.builders import annotation, run, stage
from conformance.clause import MUST, Need, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import new_run, new_stage
from workflow_adapters.errors import AlreadyExistsError, InvalidValueError, NotFoundError, StaleVersionError
from workflow_adapters.inputs.definitions import CreateDefinitionInput
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput, UpsertStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import Acquired
from workflow_adapters.records.status import LogLevel

_Call: TypeAlias = Callable[[WorkflowPersistence], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conflict:
    number: int
    text: str
    """What happens, as the beginning of the clause."""
    error: type[Exception] | None
    prepare: Callable[[Context[WorkflowPersistence]], Awaitable[_Call]]
    after: str
    needs: tuple[Need, ...] = ()


async def _taken_run(ctx: Context[WorkflowPersistence]) -> _Call:
    stored = await new_run(ctx)
    return lambda tx: tx.create_run(run(id=stored.id))


async def _taken_stage(ctx: Context[WorkflowPersistence]) -> _Call:
    stored = await new_stage(ctx)
    return lambda tx: tx.create_stage(stage(stored.workflow_run_id))


async def _unknown_run(ctx: Context[WorkflowPersistence]) -> _Call:
    run_id = ctx.new_id("no-run")
    return lambda tx: tx.update_run(run_id, UpdateRunInput())


async def _unknown_parent_of_a_stage(ctx: Context[WorkflowPersistence]) -> _Call:
    run_id = ctx.new_id("no-run")
    return lambda tx: tx.create_stage(stage(run_id))


async def _unknown_parent_of_an_upsert(ctx: Context[WorkflowPersistence]) -> _Call:
    upsert = UpsertStageInput(create=stage(ctx.new_id("no-run")), update=UpdateStageInput())
    return lambda tx: tx.upsert_stage(upsert)


async def _unknown_parent_of_an_annotation(ctx: Context[WorkflowPersistence]) -> _Call:
    batch = [annotation(await ctx.new_run(), workflow_stage_record_id=ctx.new_id("no-stage"))]
    return lambda tx: tx.append_annotations(batch)


async def _unknown_parent_of_a_log(ctx: Context[WorkflowPersistence]) -> _Call:
    line = CreateLogInput(level=LogLevel.INFO, message="x", workflow_run_id=ctx.new_id("no-run"))
    return lambda tx: tx.create_log(line)


async def _stale_run(ctx: Context[WorkflowPersistence]) -> _Call:
    stored = await new_run(ctx)
    return lambda tx: tx.update_run(stored.id, UpdateRunInput(expected_version=9))


async def _stale_stage(ctx: Context[WorkflowPersistence]) -> _Call:
    stored = await new_stage(ctx)
    return lambda tx: tx.update_stage(stored.id, UpdateStageInput(expected_version=9))


async def _stale_upsert(ctx: Context[WorkflowPersistence]) -> _Call:
    stored = await new_stage(ctx)
    upsert = UpsertStageInput(create=stage(stored.workflow_run_id), update=UpdateStageInput(expected_version=9))
    return lambda tx: tx.upsert_stage(upsert)


async def _naive_instant(ctx: Context[WorkflowPersistence]) -> _Call:
    naive = ctx.now().replace(tzinfo=None)
    return lambda tx: tx.get_stuck_runs(naive)


async def _unknown_event(ctx: Context[WorkflowPersistence]) -> _Call:
    event_id = ctx.new_id("no-event")
    return lambda tx: tx.increment_outbox_retry_count(event_id)


async def _known_annotation(ctx: Context[WorkflowPersistence]) -> _Call:
    batch = [annotation(await ctx.new_run(), idempotency_key="once")]
    await ctx.adapter.append_annotations(batch)
    return lambda tx: tx.append_annotations(batch)


async def _held_key(ctx: Context[WorkflowPersistence]) -> _Call:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    return lambda tx: tx.acquire_idempotency_key(key, "t")


async def _lost_fence(ctx: Context[WorkflowPersistence]) -> _Call:
    key = ctx.new_id("key")
    outcome = await ctx.adapter.acquire_idempotency_key(key, "t")
    fence = ctx.expect("the outcome", outcome).is_a(Acquired).fence
    await ctx.adapter.complete_idempotency_key(key, "t", 1)
    return lambda tx: tx.complete_idempotency_key(key, "t", 2, fence)


async def _known_definition(ctx: Context[WorkflowPersistence]) -> _Call:
    definition = CreateDefinitionInput(workflow_id="flow", version="v1", snapshot={}, structure_hash="h")
    await ctx.adapter.insert_definition_if_absent(definition)
    return lambda tx: tx.insert_definition_if_absent(definition)


def _conflict(
    number: int,
    text: str,
    error: type[Exception] | None,
    prepare: Callable[[Context[WorkflowPersistence]], Awaitable[_Call]],
    after: str,
    *needs: Need,
) -> _Conflict:
    return _Conflict(number=number, text=text, error=error, prepare=prepare, after=after, needs=needs)


_CONFLICTS: Final = (
    _conflict(1, "create_run with a taken id", AlreadyExistsError, _taken_run, "WP-RUN-06"),
    _conflict(2, "create_stage of a taken pair", AlreadyExistsError, _taken_stage, "WP-STAGE-06"),
    _conflict(3, "update_run of an unknown run", NotFoundError, _unknown_run, "WP-UPDATE-07"),
    _conflict(4, "create_stage in an unknown run", NotFoundError, _unknown_parent_of_a_stage, "WP-STAGE-05"),
    _conflict(5, "upsert_stage in an unknown run", NotFoundError, _unknown_parent_of_an_upsert, "WP-UPSERT-10"),
    _conflict(
        6, "append_annotations for an unknown stage", NotFoundError, _unknown_parent_of_an_annotation, "WP-ANN-08"
    ),
    _conflict(7, "create_log for an unknown run", NotFoundError, _unknown_parent_of_a_log, "WP-LOG-02"),
    _conflict(8, "update_run with a stale version", StaleVersionError, _stale_run, "WP-UPDATE-06"),
    _conflict(9, "update_stage with a stale version", StaleVersionError, _stale_stage, "WP-STAGE-23"),
    _conflict(10, "upsert_stage with a stale version", StaleVersionError, _stale_upsert, "WP-UPSERT-08"),
    _conflict(11, "a call with an invalid value", InvalidValueError, _naive_instant, "WP-TIME-01"),
    _conflict(12, "a retry count of an unknown event", NotFoundError, _unknown_event, "WP-RETRY-02"),
    _conflict(13, "append_annotations of what is stored already", None, _known_annotation, "WP-ANN-03"),
    _conflict(14, "acquire_idempotency_key of a held key", None, _held_key, "WP-IDEM-02"),
    _conflict(15, "complete_idempotency_key with a lost fence", None, _lost_fence, "WP-IDEM-27"),
    _conflict(
        16,
        "insert_definition_if_absent of what is stored already",
        None,
        _known_definition,
        "WP-DEF-03",
        Requires("definition_versions", "stored"),
    ),
)


async def _try(ctx: Context[WorkflowPersistence], conflict: _Conflict) -> None:
    call = await conflict.prepare(ctx)
    before, after = ctx.new_id("run"), ctx.new_id("run")
    async with ctx.adapter.transaction() as tx:
        await tx.create_run(run(id=before))
        if conflict.error is None:
            await call(tx)
        else:
            with ctx.raises(conflict.error, conflict.text):
                await call(tx)
        await tx.create_run(run(id=after))
    for shown, run_id in (("before", before), ("after", after)):
        ctx.expect(f"the run written {shown} it", await ctx.adapter.get_run(run_id)).is_not_none()


def _register(conflict: _Conflict) -> None:
    async def trial(ctx: Context[WorkflowPersistence]) -> None:
        await _try(ctx, conflict)

    clause(
        f"WP-ERR-{conflict.number:02}",
        MUST,
        text=f"{conflict.text[0].upper()}{conflict.text[1:]} leaves the transaction around it usable: it commits.",
        why="A database error that is swallowed aborts the transaction: what follows fails, what was before is lost.",
        hints=[
            "Find the conflict without a database error: ON CONFLICT DO NOTHING, INSERT … SELECT; else a savepoint."
        ],
        needs=conflict.needs,
        after=["WP-TX-01", conflict.after],
    )(trial)


for _each in _CONFLICTS:
    _register(_each)
