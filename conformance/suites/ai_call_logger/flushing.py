"""When logged calls are written: by themselves, and by flush."""

from __future__ import annotations

from typing import Final

import anyio

from conformance.builders import call
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsFlush

# Real time: what is waited for is the logger's own task.
_SOON: Final = 3.0
_PAUSE: Final = 0.005


@clause(
    "AI-LOG-10",
    MUST,
    text="A logged call is written soon, without anybody reading or flushing: another adapter on the store sees it.",
    why="A process that is killed would take with it everything since its last read.",
    hints=["A background writer that log_call wakes; 50 ms are the contract's bound, seconds are allowed here."],
    after=["AI-LOG-01"],
)
async def written_soon(ctx: Context[AICallLogger]) -> None:
    other = await ctx.second()
    ctx.adapter.log_call(call())
    found = 0
    with anyio.move_on_after(_SOON):
        while not found:
            await anyio.sleep(_PAUSE)
            found = (await other.get_stats("")).total_calls
    ctx.expect("calls as the other adapter sees them", found).equals(1)


@clause(
    "AI-FLUSH-01",
    MUST,
    text="flush returns when everything logged so far is stored: another adapter on the store sees it.",
    why="A process that flushes before it ends would still lose its last calls.",
    hints=["Wait for the batch under way as well, not only for the buffer to be empty."],
    needs=[SupportsFlush],
    after=["AI-LOG-01"],
)
async def flush(ctx: Context[AICallLogger]) -> None:
    other = await ctx.second()
    logged = 0
    # A few, more than one batch is likely to hold, and a few again.
    for count in (30, 2_500, 30):
        for _ in range(count):
            ctx.adapter.log_call(call())
        logged += count
        await ctx.capability(SupportsFlush).flush()
        stats = await other.get_stats("")
        ctx.expect("total_calls as the other adapter sees it", stats.total_calls).equals(logged)


@clause(
    "AI-FLUSH-02",
    MUST,
    text="flush with nothing logged returns at once, also several at a time.",
    why="Shutdown code calls it from everywhere.",
    hints=["Nothing to wait for is no wait."],
    needs=[SupportsFlush],
)
async def nothing_to_flush(ctx: Context[AICallLogger]) -> None:
    queue = ctx.capability(SupportsFlush)
    ctx.expect("flush, three at once", await ctx.together(queue.flush, queue.flush, queue.flush)).equals([None] * 3)
