"""Numbers in persistence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from conformance.builders import annotation
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import new_run, new_stage, run_of, stage_of
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import Status


@clause(
    "WP-INT-01",
    MUST,
    text="Integers have the whole range of 32 bits, and come back exactly.",
    why="A narrower column, or a float on the way, changes the largest ones.",
    hints=["32-bit integer columns, or wider."],
    after=["WP-RUN-02", "WP-UPDATE-01", "WP-STAGE-03", "WP-STAGE-21"],
)
async def integers(ctx: Context[WorkflowPersistence]) -> None:
    low, high = -(2**31), 2**31 - 1
    for value in (low, high):
        run = await new_run(ctx, priority=value)
        ctx.expect("priority", (await run_of(ctx, run.id)).priority).equals(value)
        one = await new_stage(ctx, run.id, stage_number=value, execution_group=value, attempt=value)
        stored = await stage_of(ctx, one)
        found = (stored.stage_number, stored.execution_group, stored.attempt)
        ctx.expect("stage_number, execution_group and attempt", found).equals((value,) * 3)
        await ctx.adapter.append_annotations([annotation(run.id, attempt=value)])
        ctx.expect("attempt", (await ctx.adapter.list_annotations(run.id))[0].attempt).equals(value)
    run, one = await new_run(ctx), await new_stage(ctx)
    await ctx.adapter.update_run(run.id, UpdateRunInput(duration=high, total_tokens=high))
    await ctx.adapter.update_stage(one.id, UpdateStageInput(duration=high, poll_interval=high))
    after, stored = await run_of(ctx, run.id), await stage_of(ctx, one)
    found = (after.duration, after.total_tokens, stored.duration, stored.poll_interval)
    ctx.expect("durations, tokens and poll_interval", found).equals((high,) * 4)


@clause(
    "WP-INT-02",
    MUST,
    text="total_cost comes back as the same float.",
    why="A single-precision column is off by dollars at scale.",
    hints=["Double precision."],
    after=["WP-UPDATE-01"],
)
async def costs(ctx: Context[WorkflowPersistence]) -> None:
    run = await new_run(ctx)
    for cost in (0.1, 0.1 + 0.2, 123456789.123456789, 1e-12, 1e300, -2.5):
        await ctx.adapter.update_run(run.id, UpdateRunInput(total_cost=cost))
        ctx.expect("total_cost", (await run_of(ctx, run.id)).total_cost).equals(cost)


@clause(
    "WP-INT-03",
    MUST,
    text="A negative limit is refused by every method that takes one.",
    why="LIMIT -1 is an error in one database and no limit in the next.",
    hints=["Check it before the first statement."],
    needs=[Requires("clock", "caller")],
)
async def negative_limits(ctx: Context[WorkflowPersistence]) -> None:
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "get_suspended_stages": lambda: ctx.adapter.get_suspended_stages(ctx.now(), -1),
        "list_runs_for_purge": lambda: ctx.adapter.list_runs_for_purge(ctx.now(), [Status.FAILED], -1),
        "get_unpublished_outbox_events": lambda: ctx.adapter.get_unpublished_outbox_events(-1),
        "claim_unpublished_outbox_events": lambda: ctx.adapter.claim_unpublished_outbox_events(-1),
    }
    for method, call in calls.items():
        with ctx.raises(InvalidValueError, f"{method} with a limit of -1", field="limit"):
            await call()
