"""What complete and suspend write."""

from __future__ import annotations

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, MINUTE, claim, job_of, running_job
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import Status


@clause(
    "JQ-ACK-51",
    MUST,
    text="complete writes now into completed_at.",
    why="How long jobs take, and which are old enough to purge, is read from it.",
    hints=["The instant of the acknowledgement, not of the claim."],
    after=["JQ-ACK-10"],
)
async def completed_at(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.advance(MINUTE)
    await ctx.adapter.complete(claimed.job_id, claimed.fence)
    ctx.expect_now("completed_at", (await job_of(ctx, claimed.workflow_run_id)).completed_at)


@clause(
    "JQ-ACK-52",
    MUST,
    text="An acknowledgement changes the job that it names and no other.",
    why="A condition on the worker alone would end everything that worker holds.",
    hints=["WHERE id = the job's id, first of all."],
    after=["JQ-ACK-10"],
)
async def no_other_job(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, "a"), job(run_id, "b")])
    first, second = await claim(ctx), await claim(ctx)
    before = await job_of(ctx, run_id, second.stage_id)
    await ctx.adapter.complete(first.job_id, first.fence)
    ctx.expect("the other running job", await job_of(ctx, run_id, second.stage_id)).equals(before)


@clause(
    "JQ-ACK-53",
    MUST,
    text="suspend keeps the instant it is given in next_poll_at.",
    why="Whoever wakes suspended work looks there.",
    hints=["The caller's instant, as it is."],
    after=["JQ-ACK-20"],
)
async def suspended_until(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    until = ctx.now() + HOUR
    await ctx.adapter.suspend(claimed.job_id, until, claimed.fence)
    ctx.expect("next_poll_at", (await job_of(ctx, claimed.workflow_run_id)).next_poll_at).equals(until)


@clause(
    "JQ-ACK-54",
    MUST,
    text="suspend clears the worker and the lock.",
    why="A job that nobody works on would look held, and sweeps would count it.",
    hints=["worker_id and locked_at become NULL; started_at stays."],
    after=["JQ-ACK-20"],
)
async def suspend_unlocks(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.suspend(claimed.job_id, ctx.now() + HOUR, claimed.fence)
    stored = await job_of(ctx, claimed.workflow_run_id)
    ctx.expect("worker_id", stored.worker_id).is_none()
    ctx.expect("locked_at", stored.locked_at).is_none()


@clause(
    "JQ-ACK-55",
    MUST,
    text="A suspended job whose pair is enqueued again runs again.",
    why="That is how a stage that waited is resumed.",
    hints=["The fresh row is PENDING and due."],
    after=["JQ-ACK-20", "JQ-ENQ-12"],
)
async def resumed(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.suspend(claimed.job_id, ctx.now() + HOUR, claimed.fence)
    await ctx.adapter.enqueue_parallel([job(claimed.workflow_run_id)])
    ctx.expect("run of the claim", (await claim(ctx)).workflow_run_id).equals(claimed.workflow_run_id)
    ctx.expect("status", (await job_of(ctx, claimed.workflow_run_id)).status).equals(Status.RUNNING)
