"""Writes beside and inside an open transaction, where there is one writer and where there are many."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import anyio

from conformance.builders import run
from conformance.clause import MUST, Options, Requires
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.errors import BackendBusyError, UsageError
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence

_ONE_WRITER: Final = (Requires("writers", "one"),)
_A_FEW_TURNS: Final = 20


async def _exist(ctx: Context[WorkflowPersistence], *ids: str) -> list[bool]:
    return [await ctx.adapter.get_run(run_id) is not None for run_id in ids]


@clause(
    "WP-TX-28",
    MUST,
    text="On a backend with one writer, a write on the outer adapter from inside a block is a UsageError at once.",
    why="It could only wait for itself: the process would stand still until the timeout.",
    hints=["Check whether the running task is inside a transaction of this store before waiting."],
    needs=_ONE_WRITER,
    after=["WP-TX-01"],
)
async def outer_write_inside(ctx: Context[WorkflowPersistence]) -> None:
    written, refused = ctx.new_id("run"), ctx.new_id("run")
    async with ctx.adapter.transaction() as tx:
        await tx.create_run(run(id=written))
        with ctx.raises(UsageError, "create_run on the outer adapter"):
            await ctx.adapter.create_run(run(id=refused))
        ctx.expect("a read on the outer adapter", await ctx.adapter.get_run(written)).is_none()
    ctx.expect("runs", await _exist(ctx, written, refused)).equals([True, False])


@clause(
    "WP-TX-29",
    MUST,
    text="On a backend with one writer, a write from another task waits for the transaction's end, and then counts.",
    why="Writers that fail instead of waiting make every busy moment an error.",
    hints=["Wait for the writer's turn, up to busy_timeout."],
    needs=_ONE_WRITER,
    after=["WP-TX-28"],
)
async def outer_write_from_outside(ctx: Context[WorkflowPersistence]) -> None:
    inside, beside = ctx.new_id("run"), ctx.new_id("run")
    order: list[str] = []
    opened = anyio.Event()

    async def transaction() -> None:
        async with ctx.adapter.transaction() as tx:
            opened.set()
            for _ in range(_A_FEW_TURNS):
                await tx.get_run(inside)
            await tx.create_run(run(id=inside))
            order.append("transaction")

    async def write() -> None:
        await opened.wait()
        await ctx.adapter.create_run(run(id=beside))
        order.append("write")

    await ctx.together(transaction, write)
    ctx.expect("the order of their ends", order).equals(["transaction", "write"])
    ctx.expect("runs", await _exist(ctx, inside, beside)).equals([True, True])


@clause(
    "WP-TX-30",
    MUST,
    text="A write that waits longer than busy_timeout for another transaction raises BackendBusyError.",
    why="A wait without an end hangs the service; None or a driver's error in its place is misread.",
    hints=["A deadline on the wait; nothing was written."],
    needs=_ONE_WRITER,
    after=["WP-TX-29"],
    options=Options(busy_timeout=timedelta(milliseconds=30)),
)
async def too_long(ctx: Context[WorkflowPersistence]) -> None:
    other = await ctx.second()
    inside, beside = ctx.new_id("run"), ctx.new_id("run")
    opened, waited = anyio.Event(), anyio.Event()

    async def transaction() -> None:
        async with ctx.adapter.transaction() as tx:
            await tx.create_run(run(id=inside))
            opened.set()
            await waited.wait()

    async def write() -> None:
        await opened.wait()
        try:
            with ctx.raises(BackendBusyError, "create_run beside a transaction that does not end"):
                await other.create_run(run(id=beside))
        finally:
            waited.set()

    await ctx.together(transaction, write)
    ctx.expect("runs", await _exist(ctx, inside, beside)).equals([True, False])


@clause(
    "WP-CLAIM-09",
    MUST,
    text="With many writers a claim passes over a run that an open transaction has claimed, without waiting.",
    why="One host with a long transaction would stop all others from claiming.",
    hints=["FOR UPDATE SKIP LOCKED."],
    needs=[Requires("writers", "many")],
    after=["WP-CLAIM-04", "WP-TX-01"],
)
async def claim_beside_a_claim(ctx: Context[WorkflowPersistence]) -> None:
    other = await ctx.second()
    await ctx.adapter.create_run(run(id=ctx.new_id("run"), priority=9))
    second = (await ctx.adapter.create_run(run(id=ctx.new_id("run")))).id
    async with ctx.adapter.transaction() as tx:
        await tx.claim_next_pending_run()
        beside = ctx.expect("a claim beside", await other.claim_next_pending_run()).is_not_none()
        ctx.expect("run of the claim beside", beside.id).equals(second)
        ctx.expect("a further claim", await other.claim_next_pending_run()).is_none()
