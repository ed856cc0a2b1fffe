"""What a fence is: (started_at, attempt) names one claim of one job for ever."""

from __future__ import annotations

from datetime import timedelta, timezone

from conformance.builders import job
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import EVERY_LEASE, HOUR, MS, claim, claim_again, job_of, running_job
from workflow_adapters.ports.job_queue import JobQueue, SupportsDefer
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome, Status


@clause(
    "JQ-FENCE-01",
    MUST,
    text="An acknowledgement with the fence of the current claim is ACKNOWLEDGED and takes effect.",
    why="A worker that still holds its job could otherwise never finish it.",
    hints=["Compare started_at as it was handed out: to the millisecond, in UTC."],
    after=["JQ-DEQ-01"],
)
async def complete_with_the_current_fence(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    outcome = await ctx.adapter.complete(claimed.job_id, claimed.fence)
    ctx.expect("complete with the fence", outcome).equals(JobAckOutcome.ACKNOWLEDGED)
    stored = await job_of(ctx, claimed.workflow_run_id)
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
    lost = await running_job(ctx)
    ctx.expect("leases given back", await other.release_stale_jobs(EVERY_LEASE)).equals(1)
    await claim(ctx, other)
    before = await other.get_jobs_by_workflow_run(lost.workflow_run_id)
    outcome = await ctx.adapter.complete(lost.job_id, lost.fence)
    ctx.expect("complete with the lost fence", outcome).equals(JobAckOutcome.SUPERSEDED)
    ctx.expect("the job afterwards", await ctx.adapter.get_jobs_by_workflow_run(lost.workflow_run_id)).equals(before)


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
    first = await running_job(ctx)
    await ctx.capability(SupportsDefer).defer(first.job_id, ctx.now() - HOUR, "busy", first.fence)
    second = await claim(ctx)
    ctx.expect("attempt of the second claim", second.attempt).equals(first.attempt)
    ctx.expect("started_at of the second claim", second.started_at).is_greater_than(first.started_at)


@clause(
    "JQ-FENCE-04",
    MUST,
    text="started_at of a claim is later than that of the claim whose lease was taken away in the same millisecond.",
    why="A fast sweep and reclaim would give two workers equal instants, and only the attempt would tell them apart.",
    hints=["max(now, started_at + 1 ms), and release_stale_jobs leaves started_at in the row."],
    after=["JQ-FENCE-01"],
)
async def started_at_increases_after_release(ctx: Context[JobQueue]) -> None:
    first = await running_job(ctx)
    second = await claim_again(ctx)
    ctx.expect("started_at of the second claim", second.started_at).is_greater_than(first.started_at)


@clause(
    "JQ-FENCE-05",
    MUST,
    text="While time stands still, each claim of a job starts exactly one millisecond after the one before.",
    why="A larger step puts leases into the future, where no sweep finds them.",
    hints=["max(now, started_at + 1 ms), at whole milliseconds."],
    needs=[Requires("clock", "caller")],
    after=["JQ-FENCE-04"],
)
async def one_millisecond_later(ctx: Context[JobQueue]) -> None:
    first = await running_job(ctx)
    for number in range(1, 4):
        again = await claim_again(ctx)
        ctx.expect(f"started_at of reclaim {number}", again.started_at).equals(first.started_at + number * MS)


@clause(
    "JQ-FENCE-06",
    MUST,
    text="started_at increases even when the clock has been set back between two claims.",
    why="A clock that is corrected backwards would let an old fence come true again.",
    hints=["The stored started_at takes part in max(), not only the clock."],
    needs=[Requires("clock", "caller")],
    after=["JQ-FENCE-04"],
)
async def with_the_clock_set_back(ctx: Context[JobQueue]) -> None:
    first = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    await ctx.advance(-HOUR)
    ctx.expect("started_at of the second claim", (await claim(ctx)).started_at).is_greater_than(first.started_at)


@clause(
    "JQ-FENCE-07",
    MUST,
    text="When time has passed, a claim starts now and not where the last one left off.",
    why="A lease that begins in the past is old at once and taken away again.",
    hints=["max(now, started_at + 1 ms): the larger of the two."],
    after=["JQ-FENCE-04"],
)
async def starts_now(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    await ctx.advance(HOUR)
    again = await claim(ctx)
    ctx.expect_now("started_at of the second claim", again.started_at)
    ctx.expect("started_at of the second claim", again.started_at).is_at_least(claimed.started_at + HOUR)
    ctx.expect("locked_at", (await job_of(ctx, claimed.workflow_run_id)).locked_at).equals(again.started_at)


@clause(
    "JQ-FENCE-08",
    MUST,
    text="No two of many claims of one job have the same fence, however often it was deferred or released.",
    why="One fence that comes twice is enough for a late worker to end a stranger's attempt.",
    hints=["Attempts go down with defer; started_at must not."],
    needs=[SupportsDefer],
    after=["JQ-FENCE-03", "JQ-FENCE-04"],
)
async def never_twice(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    fences = {claimed.fence}
    for number in range(20):
        if number % 3:
            await ctx.capability(SupportsDefer).defer(claimed.job_id, ctx.now() - HOUR, "busy", claimed.fence)
        else:
            await ctx.adapter.release_stale_jobs(EVERY_LEASE)
        claimed = await claim(ctx)
        fences.add(claimed.fence)
    ctx.expect("different fences of 21 claims", len(fences)).equals(21)


@clause(
    "JQ-FENCE-09",
    MUST,
    text="A fence that was written down and read back holds: the same instant in any zone, at whole milliseconds.",
    why="Hosts send fences through JSON and other languages; an instant finer than that comes back different.",
    hints=["Truncate started_at when it is written.", "Compare instants, not their text."],
    after=["JQ-FENCE-01"],
)
async def written_down(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    ctx.expect("microseconds of started_at", claimed.started_at.microsecond % 1000).equals(0)
    elsewhere = claimed.started_at.astimezone(timezone(timedelta(hours=5, minutes=30)))
    fence = JobAckFence(started_at=elsewhere, attempt=claimed.attempt)
    ctx.expect("complete with it", await ctx.adapter.complete(claimed.job_id, fence)).equals(JobAckOutcome.ACKNOWLEDGED)


@clause(
    "JQ-FENCE-10",
    MUST,
    text="A retry, a defer, a suspension and a release leave started_at in the row.",
    why="The next claim could not be made later than the last one, and two claims would share a fence.",
    hints=["Clear worker_id and locked_at, nothing more."],
    needs=[SupportsDefer],
    after=["JQ-FENCE-01"],
)
async def started_at_stays(ctx: Context[JobQueue]) -> None:
    first = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    ctx.expect("after a release", (await job_of(ctx, first.workflow_run_id)).started_at).equals(first.started_at)
    second = await claim(ctx)
    await ctx.capability(SupportsDefer).defer(second.job_id, ctx.now() - HOUR, "busy", second.fence)
    ctx.expect("after a defer", (await job_of(ctx, first.workflow_run_id)).started_at).equals(second.started_at)
    third = await claim(ctx)
    await ctx.adapter.suspend(third.job_id, ctx.now(), third.fence)
    ctx.expect("after a suspension", (await job_of(ctx, first.workflow_run_id)).started_at).equals(third.started_at)
    fourth = await running_job(ctx)
    await ctx.adapter.fail(fourth.job_id, "broken", True, fourth.fence)
    ctx.expect("after a retry", (await job_of(ctx, fourth.workflow_run_id)).started_at).equals(fourth.started_at)


@clause(
    "JQ-FENCE-11",
    MUST,
    text="The fence of a claim whose pair was enqueued again is SUPERSEDED, and the fresh job is untouched.",
    why="The worker of the old job would complete the new one before it has run.",
    hints=["A replaced row has a new id; the old id is nobody's."],
    after=["JQ-ENQ-12", "JQ-FENCE-02"],
)
async def replaced_meanwhile(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.enqueue_parallel([job(claimed.workflow_run_id)])
    fresh = await job_of(ctx, claimed.workflow_run_id)
    outcome = await ctx.adapter.complete(claimed.job_id, claimed.fence)
    ctx.expect("complete of the replaced job", outcome).equals(JobAckOutcome.SUPERSEDED)
    ctx.expect("the fresh job", await job_of(ctx, claimed.workflow_run_id)).equals(fresh)
