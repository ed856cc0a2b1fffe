"""Transactions inside transactions, and calls from inside and outside a block."""

from __future__ import annotations

from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from conformance.builders import run
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import Broken, run_of
from workflow_adapters.errors import UsageError
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence

_A_FEW_TURNS: Final = 20


async def _exist(ctx: Context[WorkflowPersistence], *ids: str) -> list[bool]:
    return [await ctx.adapter.get_run(run_id) is not None for run_id in ids]


@clause(
    "WP-TX-21",
    MUST,
    text="An inner block that fails and is caught undoes its own work alone; what is around it commits.",
    why="A host tries one way, and falls back to another, in one transaction.",
    hints=["SAVEPOINT, and ROLLBACK TO it."],
    after=["WP-TX-03"],
)
async def inner_failure(ctx: Context[WorkflowPersistence]) -> None:
    before, inside, after = (ctx.new_id("run") for _ in range(3))
    async with ctx.adapter.transaction() as tx:
        await tx.create_run(run(id=before))
        with ctx.raises(Broken, "the inner block"):
            async with tx.transaction() as inner:
                await inner.create_run(run(id=inside))
                raise Broken
        await tx.create_run(run(id=after))
    ctx.expect("runs before, inside and after", await _exist(ctx, before, inside, after)).equals([True, False, True])


@clause(
    "WP-TX-22",
    MUST,
    text="An inner block that succeeds is undone with the outer one when that fails.",
    why="An inner commit that is real makes the outer rollback a lie.",
    hints=["RELEASE SAVEPOINT is no commit."],
    after=["WP-TX-21"],
)
async def outer_failure(ctx: Context[WorkflowPersistence]) -> None:
    inside = ctx.new_id("run")

    async def inner_work(inner: WorkflowPersistence) -> int:
        await inner.create_run(run(id=inside))
        return 7

    with ctx.raises(Broken, "the outer block"):
        async with ctx.adapter.transaction() as tx:
            ctx.expect("the inner value", await tx.with_transaction(inner_work)).equals(7)
            raise Broken
    ctx.expect("the run of the inner block", await _exist(ctx, inside)).equals([False])


@clause(
    "WP-TX-23",
    MUST,
    text="Blocks nest three deep and more, each undone on its own.",
    why="Functions that open a block call others that do.",
    hints=["Name the savepoints by depth, or number them."],
    after=["WP-TX-21"],
)
async def three_deep(ctx: Context[WorkflowPersistence]) -> None:
    first, second, third, fourth = (ctx.new_id("run") for _ in range(4))
    async with ctx.adapter.transaction() as tx:
        await tx.create_run(run(id=first))
        async with tx.transaction() as middle:
            await middle.create_run(run(id=second))
            with ctx.raises(Broken, "the innermost block"):
                async with middle.transaction() as inner:
                    await inner.create_run(run(id=third))
                    raise Broken
            async with middle.transaction() as inner:
                await inner.create_run(run(id=fourth))
    ctx.expect("runs", await _exist(ctx, first, second, third, fourth)).equals([True, True, False, True])


@clause(
    "WP-TX-24",
    MUST,
    text="Inside an inner block a call on the outer tx is a UsageError, also from a task that was started there.",
    why="It could only wait for itself; a deadlock without a message is the worst answer.",
    hints=["A context variable tells which blocks the running task is inside of."],
    after=["WP-TX-21"],
)
async def outer_tx_inside(ctx: Context[WorkflowPersistence]) -> None:
    stored, refused = ctx.new_id("run"), ctx.new_id("run")
    async with ctx.adapter.transaction() as tx, tx.transaction() as inner:
        await inner.create_run(run(id=stored))
        with ctx.raises(UsageError, "create_run on the outer tx"):
            await tx.create_run(run(id=refused))
        (outcome,) = await ctx.settled(lambda: tx.get_run(stored))
        ctx.expect("get_run on the outer tx from a task", outcome).is_a(UsageError)
    ctx.expect("runs", await _exist(ctx, stored, refused)).equals([True, False])


@clause(
    "WP-TX-25",
    MUST,
    text="A call on the outer tx from a task outside the inner block waits for the block's end.",
    why="Sibling tasks share a transaction; a write that slips into another's savepoint is undone with it.",
    hints=["The inner block holds the outer tx's turn."],
    after=["WP-TX-24"],
)
async def outer_tx_from_outside(ctx: Context[WorkflowPersistence]) -> None:
    written = ctx.new_id("run")
    order: list[str] = []
    opened = anyio.Event()
    async with ctx.adapter.transaction() as tx:

        async def block() -> None:
            with ctx.raises(Broken, "the inner block"):
                async with tx.transaction() as inner:
                    opened.set()
                    for _ in range(_A_FEW_TURNS):
                        await inner.get_run(written)
                    order.append("block")
                    raise Broken

        async def call() -> None:
            await opened.wait()
            await tx.create_run(run(id=written))
            order.append("call")

        await ctx.together(block, call)
    ctx.expect("the order of their ends", order).equals(["block", "call"])
    ctx.expect("the run written beside the block", await _exist(ctx, written)).equals([True])


@clause(
    "WP-TX-26",
    MUST,
    text="Two inner blocks of one tx, opened by two tasks, run one after the other, each undone on its own.",
    why="Interleaved savepoints undo each other's work.",
    hints=["A block holds the outer tx's turn from SAVEPOINT to RELEASE."],
    after=["WP-TX-25"],
)
async def two_inner_blocks(ctx: Context[WorkflowPersistence]) -> None:
    kept, undone = ctx.new_id("run"), ctx.new_id("run")
    inside: list[str] = []
    overlaps: list[str] = []
    async with ctx.adapter.transaction() as tx:

        async def block(run_id: str, fails: bool) -> None:
            async with tx.transaction() as inner:
                overlaps.extend(inside)
                inside.append(run_id)
                for _ in range(_A_FEW_TURNS):
                    await checkpoint()
                await inner.create_run(run(id=run_id))
                inside.remove(run_id)
                if fails:
                    raise Broken

        outcomes = await ctx.settled(lambda: block(undone, True), lambda: block(kept, False))
        ctx.expect("outcome of the second block", outcomes[1]).is_none()
    ctx.expect("blocks that were open beside another", overlaps).is_empty()
    ctx.expect("runs", await _exist(ctx, kept, undone)).equals([True, False])


@clause(
    "WP-TX-27",
    MUST,
    text="An outer tx used after an inner block has ended works on; the inner one is at its end.",
    why="A handle that outlives its savepoint writes outside of it.",
    hints=["UsageError on the inner tx."],
    after=["WP-TX-21"],
)
async def after_an_inner_block(ctx: Context[WorkflowPersistence]) -> None:
    written = ctx.new_id("run")
    async with ctx.adapter.transaction() as tx:
        async with tx.transaction() as inner:
            await inner.get_run(written)
        with ctx.raises(UsageError, "create_run on the inner tx after its end"):
            await inner.create_run(run(id=written))
        await tx.create_run(run(id=written))
    await run_of(ctx, written)
