"""wait_for_jobs: sleeping until a job may be due."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, MINUTE, claim, enqueue_one
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.ports.job_queue import JobQueue, SupportsWaiting

_NEEDS: Final = (SupportsWaiting,)
_AT_ONCE: Final = timedelta(0)
# Longer than the clause may take: an answer in time is one to the job, not to the timeout.
_LONG: Final = timedelta(minutes=10)


@clause(
    "JQ-WAIT-01",
    MUST,
    text="wait_for_jobs answers True at once when a job is due.",
    why="A worker would sleep beside work that is ready.",
    hints=["Look before the wait, and again after subscribing."],
    needs=_NEEDS,
    after=["JQ-ENQ-01"],
)
async def due_already(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    for enqueuing in (ctx.adapter, other):
        for date in (None, ctx.now() - HOUR):
            run_id = await ctx.new_run()
            await enqueuing.enqueue_parallel([job(run_id, scheduled_for=date)])
            ctx.expect("the answer", await ctx.capability(SupportsWaiting).wait_for_jobs(_LONG)).is_true()
            await ctx.adapter.cancel_by_run(run_id)


@clause(
    "JQ-WAIT-02",
    MUST,
    text="wait_for_jobs answers False at the timeout when nothing is due.",
    why="A worker that is never woken can not stop, sweep or beat.",
    hints=["A timeout of zero is one look."],
    needs=_NEEDS,
    after=["JQ-ENQ-01"],
)
async def timeout(ctx: Context[JobQueue]) -> None:
    queue = ctx.capability(SupportsWaiting)
    ctx.expect("the answer with an empty queue", await queue.wait_for_jobs(_AT_ONCE)).is_false()
    await enqueue_one(ctx, scheduled_for=ctx.now() + 24 * HOUR)
    ctx.expect("the answer with a job of tomorrow", await queue.wait_for_jobs(_AT_ONCE)).is_false()


@clause(
    "JQ-WAIT-03",
    MUST,
    text="wait_for_jobs answers True when a job is enqueued during the wait.",
    why="Work would lie until the next timeout.",
    hints=["Poll behind every notification: it may get lost."],
    needs=_NEEDS,
    after=["JQ-WAIT-01"],
)
async def woken(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()

    async def wait() -> bool:
        return await ctx.capability(SupportsWaiting).wait_for_jobs(_LONG)

    async def enqueue() -> bool:
        await ctx.adapter.enqueue_parallel([job(run_id)])
        return True

    ctx.expect("answers of wait and enqueue", await ctx.together(wait, enqueue)).equals([True, True])
    await claim(ctx)


@clause(
    "JQ-WAIT-04",
    MUST,
    text="wait_for_jobs is woken by a job that another adapter enqueues.",
    why="Work comes from other processes; a wait that hears only its own is a sleep.",
    hints=["An event in this process's memory is not enough: poll the store, or LISTEN."],
    needs=_NEEDS,
    after=["JQ-WAIT-03"],
)
async def woken_by_another(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    run_id = await ctx.new_run()

    async def wait() -> bool:
        return await ctx.capability(SupportsWaiting).wait_for_jobs(_LONG)

    async def enqueue() -> bool:
        await other.enqueue_parallel([job(run_id)])
        return True

    ctx.expect("answers of wait and enqueue", await ctx.together(wait, enqueue)).equals([True, True])


@clause(
    "JQ-WAIT-05",
    MUST,
    text="wait_for_jobs takes no job and spends no attempt.",
    why="It is a hint; a worker that waits and then stops would take work with it.",
    hints=["Read, do not claim."],
    needs=_NEEDS,
    after=["JQ-WAIT-01"],
)
async def takes_nothing(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx)
    await ctx.advance(MINUTE)
    await ctx.capability(SupportsWaiting).wait_for_jobs(_AT_ONCE)
    ctx.expect("attempt of the claim afterwards", (await claim(ctx)).attempt).equals(1)


@clause(
    "JQ-WAIT-06",
    MUST,
    text="wait_for_jobs refuses a negative timeout.",
    why="A deadline that was computed wrongly would turn the wait into a busy loop.",
    hints=["Negative spans mean something to the two lease sweeps only."],
    needs=_NEEDS,
)
async def negative_timeout(ctx: Context[JobQueue]) -> None:
    with ctx.raises(InvalidValueError, "wait_for_jobs for a negative time", field="timeout"):
        await ctx.capability(SupportsWaiting).wait_for_jobs(timedelta(milliseconds=-1))
