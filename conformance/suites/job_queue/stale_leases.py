"""release_stale_jobs: the lease that heartbeats keep alive."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from conformance.builders import job
from conformance.clause import MUST, TIME_LIMIT_OF_MANY_CALLS, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import (
    EVERY_LEASE,
    HOUR,
    MINUTE,
    MS,
    claim,
    claim_again,
    drain,
    enqueue_stages,
    job_of,
    running_job,
    statuses,
)
from workflow_adapters.inputs.job_queue import LEASE_HEARTBEAT_LOST
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import Status

_SECOND: Final = timedelta(seconds=1)


@clause(
    "JQ-STALE-01",
    MUST,
    text="release_stale_jobs gives a job whose lease is old back to the queue, and returns how many it changed.",
    why="Jobs of a worker that died would stay RUNNING for ever.",
    hints=["RUNNING and locked_at older than the span: PENDING."],
    after=["JQ-DEQ-01"],
)
async def given_back(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 3)
    await claim(ctx)
    await claim(ctx)
    ctx.expect("leases given back", await ctx.adapter.release_stale_jobs(EVERY_LEASE)).equals(2)
    ctx.expect("statuses", set((await statuses(ctx, run_id)).values())).equals({Status.PENDING})


@clause(
    "JQ-STALE-02",
    MUST,
    text="A released job has neither worker nor lock.",
    why="A lock that is left over makes the next sweep take the job from its new worker at once.",
    hints=["worker_id and locked_at become NULL."],
    after=["JQ-STALE-01"],
)
async def unlocked(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    stored = await job_of(ctx, claimed.workflow_run_id)
    ctx.expect("worker_id", stored.worker_id).is_none()
    ctx.expect("locked_at", stored.locked_at).is_none()


@clause(
    "JQ-STALE-03",
    MUST,
    text="A released job keeps its attempt.",
    why="A job that kills its worker would never use its attempts up.",
    hints=["A lost lease is an attempt; only defer gives one back."],
    after=["JQ-STALE-01"],
)
async def keeps_the_attempt(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    ctx.expect("attempt", (await job_of(ctx, claimed.workflow_run_id)).attempt).equals(1)


@clause(
    "JQ-STALE-04",
    MUST,
    text="last_error of a released job begins with LEASE_HEARTBEAT_LOST, a colon and a space, and details follow.",
    why="Hosts tell a lost worker from a failed handler by this word.",
    hints=["Use the exported constant."],
    after=["JQ-STALE-01"],
)
async def the_reason(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    reason = ctx.expect("last_error", (await job_of(ctx, claimed.workflow_run_id)).last_error).is_not_none()
    ctx.expect("last_error", reason).starts_with(f"{LEASE_HEARTBEAT_LOST}: ")
    ctx.expect("details in last_error", reason.partition(": ")[2]).satisfies("a text that is not empty", bool)


@clause(
    "JQ-STALE-05",
    MUST,
    text="A lease that is younger than the span is left alone.",
    why="Healthy jobs would be handed to a second worker.",
    hints=["Compare locked_at with now on one clock."],
    after=["JQ-STALE-01"],
)
async def young(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    ctx.expect("leases given back", await ctx.adapter.release_stale_jobs(HOUR)).equals(0)
    ctx.expect("status", (await job_of(ctx, claimed.workflow_run_id)).status).equals(Status.RUNNING)


@clause(
    "JQ-STALE-06",
    MUST,
    text="Without a span a lease is stale after five minutes.",
    why="Workers time their heartbeats by the default; a shorter one takes their jobs away.",
    hints=["Milliseconds and seconds are easily confused."],
    after=["JQ-STALE-01"],
)
async def five_minutes(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    await ctx.advance(5 * MINUTE - _SECOND)
    ctx.expect("leases given back a second early", await ctx.adapter.release_stale_jobs()).equals(0)
    await ctx.advance(2 * _SECOND)
    ctx.expect("leases given back a second late", await ctx.adapter.release_stale_jobs()).equals(1)


@clause(
    "JQ-STALE-07",
    MUST,
    text="Only running jobs are released: a lock of a job that has ended means nothing.",
    why="A sweep that looks at the lock alone brings finished work back to life.",
    hints=["status = 'RUNNING' in the WHERE of the UPDATE itself."],
    after=["JQ-STALE-01"],
)
async def running_only(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 4)
    completed, failed, suspended = await claim(ctx), await claim(ctx), await claim(ctx)
    await ctx.adapter.complete(completed.job_id)
    await ctx.adapter.fail(failed.job_id, "broken")
    await ctx.adapter.suspend(suspended.job_id, ctx.now() + HOUR)
    before = await ctx.adapter.get_jobs_by_workflow_run(run_id)
    ctx.expect("leases given back", await ctx.adapter.release_stale_jobs(EVERY_LEASE)).equals(0)
    ctx.expect("the jobs afterwards", await ctx.adapter.get_jobs_by_workflow_run(run_id)).equals(before)


@clause(
    "JQ-STALE-08",
    MUST,
    text="A released job can be claimed at once, as the next attempt.",
    why="Recovery would wait for a due instant that nobody sets.",
    hints=["The sweep leaves next_poll_at alone."],
    after=["JQ-STALE-01"],
)
async def claimable(ctx: Context[JobQueue]) -> None:
    at = ctx.now() - HOUR
    claimed = await running_job(ctx, scheduled_for=at)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    ctx.expect("next_poll_at", (await job_of(ctx, claimed.workflow_run_id)).next_poll_at).equals(at)
    ctx.expect("attempt of the second claim", (await claim(ctx)).attempt).equals(2)


@clause(
    "JQ-STALE-09",
    MUST,
    text="A claim starts a new lease: a job that lay around with an old one is not swept right after it.",
    why="Between claim and first heartbeat the job would be handed to a second worker.",
    hints=["The claim writes locked_at in the statement that makes the job RUNNING."],
    after=["JQ-STALE-06", "JQ-STALE-08"],
)
async def a_claim_starts_the_lease(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    await ctx.advance(HOUR)
    await claim_again(ctx)
    ctx.expect("leases given back right after the claim", await ctx.adapter.release_stale_jobs()).equals(0)


@clause(
    "JQ-STALE-13",
    MUST,
    text="One sweep releases every stale lease, however many healthy ones there are.",
    why="A sweep that looks at a page of rows first can be blocked by healthy jobs for ever.",
    hints=["No LIMIT before the condition on the lease."],
    after=["JQ-STALE-05"],
    time_limit=TIME_LIMIT_OF_MANY_CALLS,
)
async def all_of_them(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 150)
    await drain(ctx.adapter)
    await ctx.advance(HOUR)
    await ctx.adapter.enqueue_parallel([job(run_id, f"healthy-{number}", priority=9) for number in range(150)])
    healthy = len(await drain(ctx.adapter))
    ctx.expect("healthy claims", healthy).equals(150)
    ctx.expect("leases given back", await ctx.adapter.release_stale_jobs()).equals(150)


@clause(
    "JQ-STALE-14",
    MUST,
    text="A lease is stale when it is older than the span, not when it is exactly as old.",
    why="Workers that beat once per span would lose their jobs to a sweep of the same instant.",
    hints=["locked_at < now - span."],
    needs=[Requires("clock", "caller")],
    after=["JQ-STALE-05"],
)
async def exactly_as_old(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    await ctx.advance(HOUR)
    ctx.expect("leases given back at the span", await ctx.adapter.release_stale_jobs(HOUR)).equals(0)
    await ctx.advance(MS)
    ctx.expect("leases given back a millisecond later", await ctx.adapter.release_stale_jobs(HOUR)).equals(1)


@clause(
    "JQ-STALE-15",
    MUST,
    text="A span of any length is taken: the longest makes no lease old, the most negative one every lease.",
    why="Hosts switch a sweep off with a very long span; an overflow takes the whole maintenance loop down.",
    hints=["now minus the span may lie before the first or after the last instant there is."],
    after=["JQ-STALE-05"],
)
async def spans_of_any_length(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    ctx.expect("leases given back", await ctx.adapter.release_stale_jobs(timedelta.max)).equals(0)
    ctx.expect("leases given back", await ctx.adapter.release_stale_jobs(timedelta.min)).equals(1)
