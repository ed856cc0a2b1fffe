"""Failing a job: retried later, or for good."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, claim, claim_again, job_of, running_job
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.job_queue import DequeueResult, JobRecord
from workflow_adapters.records.status import Status

_SECOND: Final = timedelta(seconds=1)
# How much later than the claim the failure may be stamped where the clock is not ours.
_TOLERANCE: Final = timedelta(minutes=1)


async def _failed(ctx: Context[JobQueue], claimed: DequeueResult, should_retry: bool = True) -> JobRecord:
    await ctx.adapter.fail(claimed.job_id, "broken", should_retry, claimed.fence)
    return await job_of(ctx, claimed.workflow_run_id)


def _expect_backoff(ctx: Context[JobQueue], claimed: DequeueResult, due: datetime | None, delay: timedelta) -> None:
    present = ctx.expect("next_poll_at", due).is_not_none()
    if ctx.parameters.clock == "caller":
        ctx.expect("next_poll_at", present).equals(ctx.now() + delay)
        return
    ctx.expect("next_poll_at", present).is_at_least(claimed.started_at + delay)
    ctx.expect("next_poll_at", present).is_at_most(claimed.started_at + delay + _TOLERANCE)


@clause(
    "JQ-FAIL-01",
    MUST,
    text="fail with should_retry and attempts left makes the job PENDING again and keeps its attempt.",
    why="A passing fault would end the job, or attempts would never run out.",
    hints=["The attempt was counted at the claim; fail leaves it alone."],
    after=["JQ-ACK-30"],
)
async def retried(ctx: Context[JobQueue]) -> None:
    stored = await _failed(ctx, await running_job(ctx))
    ctx.expect("status", stored.status).equals(Status.PENDING)
    ctx.expect("attempt", stored.attempt).equals(1)


@clause(
    "JQ-FAIL-02",
    MUST,
    text="A job that will be retried has neither worker nor lock, and no end.",
    why="It would look held, or finished and old enough to purge.",
    hints=["worker_id, locked_at: NULL. completed_at only for FAILED."],
    after=["JQ-FAIL-01"],
)
async def retry_unlocks(ctx: Context[JobQueue]) -> None:
    stored = await _failed(ctx, await running_job(ctx))
    for name in ("worker_id", "locked_at", "completed_at"):
        ctx.expect(name, getattr(stored, name)).is_none()


@clause(
    "JQ-FAIL-03",
    MUST,
    text="A job whose first attempt failed is due two seconds later: base 1 s, times 2 to the power of the attempt.",
    why="Without a backoff a broken dependency is hit in a tight loop until the attempts are spent.",
    hints=["base * factor ** attempt with the attempt of this claim, counted from 1."],
    after=["JQ-FAIL-01"],
)
async def first_backoff(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    stored = await _failed(ctx, claimed)
    _expect_backoff(ctx, claimed, stored.next_poll_at, 2 * _SECOND)


@clause(
    "JQ-FAIL-04",
    MUST,
    text="The backoff doubles with each attempt: four seconds after the second.",
    why="A constant backoff keeps the pressure on a dependency that needs longer to recover.",
    hints=["The exponent is the attempt, not the number of failures so far."],
    after=["JQ-FAIL-03"],
)
async def second_backoff(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    again = await claim_again(ctx)
    stored = await _failed(ctx, again)
    _expect_backoff(ctx, again, stored.next_poll_at, 4 * _SECOND)


@clause(
    "JQ-FAIL-05",
    MUST,
    text="A job that waits for its retry is not claimed before the backoff has passed, and is afterwards.",
    why="The due instant would be for show, or the retry would never come.",
    hints=["The claim compares next_poll_at with the clock that wrote it."],
    after=["JQ-FAIL-03"],
)
async def waits_for_the_backoff(ctx: Context[JobQueue]) -> None:
    await _failed(ctx, await running_job(ctx))
    ctx.expect("a claim at once", await ctx.adapter.dequeue()).is_none()
    await ctx.advance(HOUR)
    ctx.expect("attempt of the retry", (await claim(ctx)).attempt).equals(2)


@clause(
    "JQ-FAIL-06",
    MUST,
    text="fail with should_retry makes the job FAILED once its attempts are spent.",
    why="A job that can not succeed would run for ever.",
    hints=["attempt < max_attempts is decided in the statement that writes."],
    after=["JQ-FAIL-01"],
)
async def attempts_are_spent(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    await claim_again(ctx)
    last = await claim_again(ctx)
    ctx.expect("attempt of the last claim", last.attempt).equals(last.max_attempts)
    stored = await _failed(ctx, last)
    ctx.expect("status", stored.status).equals(Status.FAILED)
    ctx.expect_now("completed_at", stored.completed_at)


@clause(
    "JQ-FAIL-07",
    MUST,
    text="The last attempt but one is still retried.",
    why="Off by one, every job gets an attempt less than it was promised.",
    hints=["attempt < max_attempts: with attempt 2 of 3 there is one left."],
    after=["JQ-FAIL-06"],
)
async def one_attempt_is_left(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    again = await claim_again(ctx)
    ctx.expect("status after attempt 2 of 3", (await _failed(ctx, again)).status).equals(Status.PENDING)


@clause(
    "JQ-FAIL-08",
    MUST,
    text="fail without should_retry makes the job FAILED at once, with the end stamped.",
    why="A permanent error would be repeated, with its side effects.",
    hints=["should_retry is False by default."],
    after=["JQ-ACK-30"],
)
async def for_good(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.fail(claimed.job_id, "broken", fence=claimed.fence)
    stored = await job_of(ctx, claimed.workflow_run_id)
    ctx.expect("status", stored.status).equals(Status.FAILED)
    ctx.expect_now("completed_at", stored.completed_at)
    await ctx.advance(HOUR)
    ctx.expect("a claim later", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-FAIL-09",
    MUST,
    text="fail records the error in last_error, whether the job is retried or not.",
    why="Nobody could say why a job failed, nor why it is being retried.",
    hints=["Both branches set last_error; it replaces the one of the attempt before."],
    after=["JQ-ACK-30"],
)
async def the_error(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    for number, should_retry in enumerate((True, False)):
        error = f"failure {number}"
        await ctx.adapter.fail(claimed.job_id, error, should_retry, claimed.fence)
        shown = f"last_error with should_retry={should_retry}"
        ctx.expect(shown, (await job_of(ctx, claimed.workflow_run_id)).last_error).equals(error)
        await ctx.advance(HOUR)
        claimed = await claim(ctx) if should_retry else claimed
