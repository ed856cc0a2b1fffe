"""release_stale_jobs and jobs that have no attempt left."""

from __future__ import annotations

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import (
    EVERY_LEASE,
    claim,
    claim_again,
    job_of,
    running_job,
)
from workflow_adapters.inputs.job_queue import LEASE_HEARTBEAT_LOST
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import Status


async def _spent(ctx: Context[JobQueue]) -> DequeueResult:
    """The last claim of a job that has no attempt left."""
    await running_job(ctx)
    await claim_again(ctx)
    return await claim_again(ctx)


@clause(
    "JQ-STALE-10",
    MUST,
    text="With fail_spent a job that has no attempt left is FAILED instead, for the same reason, and counted.",
    why="A payload that kills its worker would take one worker after the other down.",
    hints=["attempt >= max_attempts decides, in the same statement."],
    after=["JQ-STALE-01"],
)
async def fail_spent(ctx: Context[JobQueue]) -> None:
    spent = await _spent(ctx)
    ctx.expect("jobs changed", await ctx.adapter.release_stale_jobs(EVERY_LEASE, fail_spent=True)).equals(1)
    stored = await job_of(ctx, spent.workflow_run_id)
    ctx.expect("status", stored.status).equals(Status.FAILED)
    ctx.expect("last_error", stored.last_error or "").starts_with(f"{LEASE_HEARTBEAT_LOST}: ")


@clause(
    "JQ-STALE-11",
    MUST,
    text="With fail_spent a job that has an attempt left is released like any other.",
    why="One lost worker would end jobs that were promised retries.",
    hints=["attempt < max_attempts: back to PENDING."],
    after=["JQ-STALE-10"],
)
async def fail_spent_spares_the_rest(ctx: Context[JobQueue]) -> None:
    await running_job(ctx)
    again = await claim_again(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE, fail_spent=True)
    status = (await job_of(ctx, again.workflow_run_id)).status
    ctx.expect("status after attempt 2 of 3", status).equals(Status.PENDING)


@clause(
    "JQ-STALE-12",
    MUST,
    text="Without fail_spent a job that has no attempt left is released and claimed once more.",
    why="The engine on the other side decides itself; a job that is failed under its feet is lost to it.",
    hints=["fail_spent is False by default."],
    after=["JQ-STALE-08"],
)
async def spent_jobs_are_released(ctx: Context[JobQueue]) -> None:
    spent = await _spent(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    ctx.expect("status", (await job_of(ctx, spent.workflow_run_id)).status).equals(Status.PENDING)
    ctx.expect("attempt of the next claim", (await claim(ctx)).attempt).equals(4)
