"""Fences of acknowledgements."""

from __future__ import annotations

from datetime import timedelta

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.ports.job_queue import JobQueue, SupportsDefer
from workflow_adapters.records.status import JobAckOutcome, Status


@clause(
    "JQ-FENCE-01",
    MUST,
    text="An acknowledgement with the fence of the current claim is ACKNOWLEDGED and takes effect.",
    why="A worker that still holds its job could otherwise never finish it.",
    hints=["Compare started_at as it was handed out: to the millisecond, in UTC."],
)
async def complete_with_the_current_fence(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id)])
    claim = ctx.expect("the claim", await ctx.adapter.dequeue()).is_not_none()
    outcome = await ctx.adapter.complete(claim.job_id, claim.fence)
    ctx.expect("complete with the fence", outcome).equals(JobAckOutcome.ACKNOWLEDGED)
    (stored,) = ctx.expect("jobs of the run", await ctx.adapter.get_jobs_by_workflow_run(run_id)).has_length(1)
    ctx.expect("status", stored.status).equals(Status.COMPLETED)
    ctx.expect_now("completed_at", stored.completed_at)


@clause(
    "JQ-FENCE-02",
    MUST,
    text="An acknowledgement with the fence of an earlier claim writes nothing and returns SUPERSEDED.",
    why="A worker that stalled past its lease would otherwise end the job of the worker that took it over.",
    hints=[
        "Compare started_at and attempt inside the statement that writes, not before it.",
        "Does the next claim write a later started_at even within one millisecond?",
    ],
    after=["JQ-FENCE-01"],
)
async def complete_with_an_earlier_fence(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id)])
    lost = ctx.expect("the first claim", await ctx.adapter.dequeue()).is_not_none()
    ctx.expect("leases given back", await other.release_stale_jobs(timedelta(seconds=-1))).equals(1)
    ctx.expect("the second claim", await other.dequeue()).is_not_none()
    before = await other.get_jobs_by_workflow_run(run_id)
    outcome = await ctx.adapter.complete(lost.job_id, lost.fence)
    ctx.expect("complete with the lost fence", outcome).equals(JobAckOutcome.SUPERSEDED)
    ctx.expect("the job afterwards", await ctx.adapter.get_jobs_by_workflow_run(run_id)).equals(before)


@clause(
    "JQ-FENCE-03",
    MUST,
    text="started_at of a claim is later than that of the job's previous claim, also after a defer.",
    why="Otherwise (started_at, attempt) would name two claims, and the fence of the first would pass for the second.",
    hints=["Let the claim write max(now, started_at + 1 ms), and keep started_at in defer, fail and release."],
    needs=[SupportsDefer],
    after=["JQ-FENCE-01"],
)
async def started_at_increases_after_defer(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id)])
    first = ctx.expect("the first claim", await ctx.adapter.dequeue()).is_not_none()
    due = ctx.now() - timedelta(hours=1)
    await ctx.capability(SupportsDefer).defer(first.job_id, due, "busy", first.fence)
    second = ctx.expect("the second claim", await ctx.adapter.dequeue()).is_not_none()
    ctx.expect("attempt of the second claim", second.attempt).equals(first.attempt)
    ctx.expect("started_at of the second claim", second.started_at).is_greater_than(first.started_at)
