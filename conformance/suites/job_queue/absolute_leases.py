"""expire_runaway_jobs: the limit that no heartbeat extends."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import (
    EVERY_LEASE,
    HOUR,
    MINUTE,
    MS,
    claim,
    enqueue_stages,
    job_of,
    running_job,
)
from workflow_adapters.inputs.job_queue import LEASE_ABSOLUTE_CAP
from workflow_adapters.ports.job_queue import JobQueue, SupportsAbsoluteLease
from workflow_adapters.records.status import JobAckOutcome, Status

_NEEDS: Final = (SupportsAbsoluteLease,)


async def _expire(ctx: Context[JobQueue]) -> int:
    return await ctx.capability(SupportsAbsoluteLease).expire_runaway_jobs(EVERY_LEASE)


@clause(
    "JQ-CAP-01",
    MUST,
    text="expire_runaway_jobs makes a running job that started too long ago FAILED, stamps its end, and counts it.",
    why="A handler that hangs while its heartbeat goes on would hold its slot for ever.",
    hints=["RUNNING and started_at older than the span: FAILED with completed_at."],
    needs=_NEEDS,
    after=["JQ-DEQ-01"],
)
async def failed(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    ctx.expect("jobs expired", await _expire(ctx)).equals(1)
    stored = await job_of(ctx, claimed.workflow_run_id)
    ctx.expect("status", stored.status).equals(Status.FAILED)
    ctx.expect_now("completed_at", stored.completed_at)


@clause(
    "JQ-CAP-02",
    MUST,
    text="last_error of an expired job begins with LEASE_ABSOLUTE_CAP, a colon and a space, and details follow.",
    why="Hosts tell a runaway handler from a failed one by this word.",
    hints=["Use the exported constant."],
    needs=_NEEDS,
    after=["JQ-CAP-01"],
)
async def the_reason(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await _expire(ctx)
    reason = ctx.expect("last_error", (await job_of(ctx, claimed.workflow_run_id)).last_error).is_not_none()
    ctx.expect("last_error", reason).starts_with(f"{LEASE_ABSOLUTE_CAP}: ")
    ctx.expect("details in last_error", reason.partition(": ")[2]).satisfies("a text that is not empty", bool)


@clause(
    "JQ-CAP-03",
    MUST,
    text="An expired job is not retried, whatever attempts it has left.",
    why="A job that runs away once does so again, and would hold a slot each time.",
    hints=["FAILED, never PENDING."],
    needs=_NEEDS,
    after=["JQ-CAP-01"],
)
async def for_good(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    await _expire(ctx)
    await ctx.advance(HOUR)
    ctx.expect("a claim later", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-CAP-04",
    MUST,
    text="A heartbeat does not extend the absolute limit.",
    why="The limit exists for handlers whose heartbeat goes on while they hang.",
    hints=["Compare started_at, not locked_at."],
    needs=_NEEDS,
    after=["JQ-CAP-01", "JQ-BEAT-01"],
)
async def heartbeats_do_not_help(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.advance(HOUR)
    await ctx.adapter.touch_job(claimed.job_id)
    expired = await ctx.capability(SupportsAbsoluteLease).expire_runaway_jobs(30 * MINUTE)
    ctx.expect("jobs expired", expired).equals(1)


@clause(
    "JQ-CAP-05",
    MUST,
    text="A job that started within the span is left alone, however old its lock is.",
    why="Healthy jobs would be failed for good.",
    hints=["started_at < now - span, on one clock."],
    needs=_NEEDS,
    after=["JQ-CAP-01"],
)
async def young(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    ctx.expect("jobs expired", await ctx.capability(SupportsAbsoluteLease).expire_runaway_jobs(HOUR)).equals(0)
    ctx.expect("status", (await job_of(ctx, claimed.workflow_run_id)).status).equals(Status.RUNNING)


@clause(
    "JQ-CAP-06",
    MUST,
    text="Only running jobs expire: a start of long ago means nothing once a job was put back or has ended.",
    why="started_at stays in the row for the fence; jobs that wait for a retry would be failed by it.",
    hints=["status = 'RUNNING' in the WHERE of the UPDATE itself."],
    needs=_NEEDS,
    after=["JQ-CAP-01"],
)
async def running_only(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 3)
    completed, retried, suspended = await claim(ctx), await claim(ctx), await claim(ctx)
    await ctx.adapter.complete(completed.job_id)
    await ctx.adapter.fail(retried.job_id, "broken", should_retry=True)
    await ctx.adapter.suspend(suspended.job_id, ctx.now() + HOUR)
    before = await ctx.adapter.get_jobs_by_workflow_run(run_id)
    ctx.expect("jobs expired", await _expire(ctx)).equals(0)
    ctx.expect("the jobs afterwards", await ctx.adapter.get_jobs_by_workflow_run(run_id)).equals(before)


@clause(
    "JQ-CAP-07",
    MUST,
    text="The worker of an expired job has lost its claim: its acknowledgement is SUPERSEDED.",
    why="A job that was failed for good would be completed after all, when everybody has drawn the consequences.",
    hints=["The acknowledgement is conditioned on RUNNING."],
    needs=_NEEDS,
    after=["JQ-CAP-01", "JQ-ACK-12"],
)
async def the_claim_is_lost(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await _expire(ctx)
    outcome = await ctx.adapter.complete(claimed.job_id, claimed.fence)
    ctx.expect("complete after the expiry", outcome).equals(JobAckOutcome.SUPERSEDED)
    ctx.expect("status", (await job_of(ctx, claimed.workflow_run_id)).status).equals(Status.FAILED)


@clause(
    "JQ-CAP-08",
    MUST,
    text="A job expires when it has run longer than the span, not when it has run exactly as long.",
    why="A limit is what is allowed; jobs that need all of it would be failed for good.",
    hints=["started_at < now - span."],
    needs=(SupportsAbsoluteLease, Requires("clock", "caller")),
    after=["JQ-CAP-05"],
)
async def exactly_as_long(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    await ctx.advance(HOUR)
    expire = ctx.capability(SupportsAbsoluteLease).expire_runaway_jobs
    ctx.expect("jobs expired at the limit", await expire(HOUR)).equals(0)
    await ctx.advance(MS)
    ctx.expect("jobs expired a millisecond later", await expire(HOUR)).equals(1)


@clause(
    "JQ-CAP-09",
    MUST,
    text="A limit of any length is taken: the longest expires no job, the most negative one every running job.",
    why="Hosts switch the limit off with a very long one; an overflow takes the whole maintenance loop down.",
    hints=["now minus the span may lie before the first or after the last instant there is."],
    needs=_NEEDS,
    after=["JQ-CAP-05"],
)
async def limits_of_any_length(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    expire = ctx.capability(SupportsAbsoluteLease).expire_runaway_jobs
    ctx.expect("jobs expired", await expire(timedelta.max)).equals(0)
    ctx.expect("jobs expired", await expire(timedelta.min)).equals(1)
