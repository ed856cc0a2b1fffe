"""Declining a job: defer puts it back without spending the attempt."""

from __future__ import annotations

from typing import Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, MINUTE, MS, claim, claim_again, enqueue_one, job_of, running_job
from workflow_adapters.ports.job_queue import JobQueue, SupportsDefer
from workflow_adapters.records.status import Status

_NEEDS: Final = (SupportsDefer,)


@clause(
    "JQ-DEFER-01",
    MUST,
    text="defer makes the job PENDING again, due at the given instant.",
    why="Work that can not be done now would be lost, or come back at once and spin.",
    hints=["The caller's instant, as it is."],
    needs=_NEEDS,
    after=["JQ-ACK-40"],
)
async def pending_until(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    until = ctx.now() + HOUR
    await ctx.capability(SupportsDefer).defer(claimed.job_id, until, "busy", claimed.fence)
    stored = await job_of(ctx, claimed.workflow_run_id)
    ctx.expect("status", stored.status).equals(Status.PENDING)
    ctx.expect("next_poll_at", stored.next_poll_at).equals(until)
    ctx.expect("a claim before that", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-DEFER-02",
    MUST,
    text="defer gives the attempt of the claim back.",
    why="Declining is not failing: a job that is put off while a limit is reached would run out of attempts.",
    hints=["attempt - 1, in the same statement."],
    needs=_NEEDS,
    after=["JQ-ACK-40"],
)
async def gives_the_attempt_back(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    again = await claim_again(ctx)
    await ctx.capability(SupportsDefer).defer(again.job_id, ctx.now(), "busy", again.fence)
    ctx.expect("attempt after defer of attempt 2", (await job_of(ctx, again.workflow_run_id)).attempt).equals(1)


@clause(
    "JQ-DEFER-03",
    MUST,
    text="defer never takes the attempt below zero.",
    why="A negative attempt would grant retries that nobody allowed.",
    hints=["greatest(attempt - 1, 0)."],
    needs=_NEEDS,
    after=["JQ-ACK-47"],
)
async def not_below_zero(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    await ctx.capability(SupportsDefer).defer((await job_of(ctx, run_id)).id, ctx.now() + HOUR, "busy")
    ctx.expect("attempt", (await job_of(ctx, run_id)).attempt).equals(0)


@clause(
    "JQ-DEFER-04",
    MUST,
    text="defer clears the worker and the lock.",
    why="A job that waits would look held, and a sweep would count it.",
    hints=["worker_id and locked_at become NULL; started_at stays."],
    needs=_NEEDS,
    after=["JQ-ACK-40"],
)
async def unlocks(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.capability(SupportsDefer).defer(claimed.job_id, ctx.now() + HOUR, "busy", claimed.fence)
    stored = await job_of(ctx, claimed.workflow_run_id)
    ctx.expect("worker_id", stored.worker_id).is_none()
    ctx.expect("locked_at", stored.locked_at).is_none()


@clause(
    "JQ-DEFER-05",
    MUST,
    text="defer records the reason in last_error.",
    why="Somebody looking at a job that never runs must find out who declines it and why.",
    hints=["last_error = reason."],
    needs=_NEEDS,
    after=["JQ-ACK-40"],
)
async def reason(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.capability(SupportsDefer).defer(claimed.job_id, ctx.now() + HOUR, "rate limit of the provider")
    ctx.expect("last_error", (await job_of(ctx, claimed.workflow_run_id)).last_error).equals(
        "rate limit of the provider"
    )


@clause(
    "JQ-DEFER-06",
    MUST,
    text="A job can be deferred any number of times and still has all its attempts.",
    why="A job that waits for capacity over night would fail without having been tried.",
    hints=["Does anything besides attempt count the claims?"],
    needs=_NEEDS,
    after=["JQ-DEFER-02", "JQ-FAIL-01"],
)
async def any_number_of_times(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    for _ in range(12):
        await ctx.capability(SupportsDefer).defer(claimed.job_id, ctx.now() - MINUTE, "busy", claimed.fence)
        claimed = await claim(ctx)
    ctx.expect("attempt of the thirteenth claim", claimed.attempt).equals(1)
    await ctx.adapter.fail(claimed.job_id, "broken", True, claimed.fence)
    status = (await job_of(ctx, claimed.workflow_run_id)).status
    ctx.expect("status after the first failure", status).equals(Status.PENDING)


@clause(
    "JQ-DEFER-07",
    MUST,
    text="A deferred job is claimed from its instant on, and not a millisecond earlier.",
    why="Rate limits are given to the instant; a job that comes early is declined again.",
    hints=["next_poll_at <= now, at whole milliseconds."],
    needs=(SupportsDefer, Requires("clock", "caller")),
    after=["JQ-DEFER-01"],
)
async def due_to_the_millisecond(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.capability(SupportsDefer).defer(claimed.job_id, ctx.now() + MINUTE, "busy", claimed.fence)
    await ctx.advance(MINUTE - MS)
    ctx.expect("a claim one millisecond early", await ctx.adapter.dequeue()).is_none()
    await ctx.advance(MS)
    await claim(ctx)
