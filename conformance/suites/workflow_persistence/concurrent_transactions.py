"""Transactions of several tasks at once."""

from __future__ import annotations

from functools import partial

from conformance.builders import event, run
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import Broken, new_run, run_of
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence


@clause(
    "WP-TX-08",
    MUST,
    text="Concurrent calls on one tx are run one after the other, and all of them count.",
    why="Hosts gather their writes; drivers answer with 'another operation is in progress' and lose the transaction.",
    hints=["A lock per transaction."],
    after=["WP-TX-01"],
)
async def concurrent_calls(ctx: Context[WorkflowPersistence]) -> None:
    ids = [ctx.new_id("run") for _ in range(9)]
    async with ctx.adapter.transaction() as tx:
        await ctx.together(*(partial(tx.create_run, run(id=run_id)) for run_id in ids))
        await ctx.together(*(partial(tx.get_run, run_id) for run_id in ids))
    missing = [run_id for run_id in ids if await ctx.adapter.get_run(run_id) is None]
    ctx.expect("runs that are missing", missing).is_empty()


@clause(
    "WP-TX-09",
    MUST,
    text="Many transactions at once all succeed, each with its own writes.",
    why="A connection shared by tasks commits one's half-written work with the other's.",
    hints=["One connection per transaction, or one transaction at a time."],
    after=["WP-TX-01"],
)
async def concurrent_transactions(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(2) * 6
    stored = await new_run(ctx)
    ids = [ctx.new_id("run") for _ in adapters]

    async def work(adapter: WorkflowPersistence, run_id: str, fails: bool) -> None:
        async with adapter.transaction() as tx:
            await tx.create_run(run(id=run_id))
            await tx.update_run(stored.id, UpdateRunInput(total_tokens=1))
            if fails:
                raise Broken

    pairs = zip(adapters, ids, strict=True)
    outcomes = await ctx.settled(*(partial(work, one, run_id, n % 3 == 0) for n, (one, run_id) in enumerate(pairs)))
    wrong = [outcome for outcome in outcomes if outcome is not None and not isinstance(outcome, Broken)]
    ctx.expect("errors", wrong).is_empty()
    found = [await ctx.adapter.get_run(run_id) is not None for run_id in ids]
    ctx.expect("runs that were created", found).equals([n % 3 != 0 for n in range(len(ids))])
    ctx.expect("updates of the common run", (await run_of(ctx, stored.id)).version - 1).equals(sum(found))


@clause(
    "WP-TX-12",
    MUST,
    text="Events that transactions append for one run at once are numbered without gap, whichever of them fail.",
    why="The number is taken before it is known whether the transaction commits.",
    hints=["The lock on the run lasts until commit."],
    after=["WP-TX-11"],
)
async def racing_appends(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 4
    run_id = ctx.new_id("run")

    async def work(adapter: WorkflowPersistence, fails: bool) -> None:
        async with adapter.transaction() as tx:
            await tx.create_run(run())
            await tx.append_outbox_events([event(run_id), event(run_id)])
            if fails:
                raise Broken

    outcomes = await ctx.settled(*(partial(work, one, n % 3 == 0) for n, one in enumerate(adapters)))
    wrong = [outcome for outcome in outcomes if outcome is not None and not isinstance(outcome, Broken)]
    ctx.expect("errors", wrong).is_empty()
    listed = await ctx.adapter.get_unpublished_outbox_events()
    expected = 2 * sum(outcome is None for outcome in outcomes)
    ctx.expect("sequences", [one.sequence for one in listed]).equals(list(range(1, expected + 1)))
