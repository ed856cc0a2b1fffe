"""Keeping a lease alive: touch_job, and the fenced heartbeat."""

from __future__ import annotations

from typing import Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import (
    EVERY_LEASE,
    HOUR,
    MINUTE,
    claim,
    claim_again,
    enqueue_stages,
    job_of,
    running_job,
)
from workflow_adapters.ports.job_queue import JobQueue, SupportsHeartbeat
from workflow_adapters.records.status import JobAckOutcome, Status

_HEARTBEAT: Final = (SupportsHeartbeat,)
_HELD: Final = JobAckOutcome.ACKNOWLEDGED
_LOST: Final = JobAckOutcome.SUPERSEDED


@clause(
    "JQ-BEAT-01",
    MUST,
    text="touch_job moves locked_at of a running job to now.",
    why="A job that takes longer than a lease would be handed to a second worker.",
    hints=["locked_at only; started_at is the fence."],
    after=["JQ-DEQ-03"],
)
async def touch(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.advance(4 * MINUTE)
    await ctx.adapter.touch_job(claimed.job_id)
    ctx.expect_now("locked_at", (await job_of(ctx, claimed.workflow_run_id)).locked_at)
    await ctx.advance(4 * MINUTE)
    ctx.expect("leases given back", await ctx.adapter.release_stale_jobs()).equals(0)


@clause(
    "JQ-BEAT-02",
    MUST,
    text="touch_job leaves the fence as it is.",
    why="The worker's own acknowledgement would be SUPERSEDED after its first heartbeat.",
    hints=["started_at and attempt stay."],
    after=["JQ-BEAT-01", "JQ-ACK-10"],
)
async def touch_keeps_the_fence(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.advance(MINUTE)
    await ctx.adapter.touch_job(claimed.job_id)
    ctx.expect("complete", await ctx.adapter.complete(claimed.job_id, claimed.fence)).equals(_HELD)


@clause(
    "JQ-BEAT-03",
    MUST,
    text="touch_job of a job that is not running changes nothing and raises nothing.",
    why="The last heartbeat of a job often comes after its end; a lock there looks like a lease.",
    hints=["status = 'RUNNING' in the WHERE."],
    after=["JQ-BEAT-01"],
)
async def touch_of_an_idle_job(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    ids = await enqueue_stages(ctx, run_id, 3)
    await ctx.adapter.complete((await claim(ctx)).job_id)
    await ctx.adapter.suspend((await claim(ctx)).job_id, ctx.now() + HOUR)
    await ctx.advance(MINUTE)
    before = await ctx.adapter.get_jobs_by_workflow_run(run_id)
    for job_id in ids:
        await ctx.adapter.touch_job(job_id)
    ctx.expect("the jobs afterwards", await ctx.adapter.get_jobs_by_workflow_run(run_id)).equals(before)


@clause(
    "JQ-BEAT-04",
    MUST,
    text="touch_job of an unknown job raises nothing.",
    why="A rerun deletes jobs under their workers; the heartbeat must not take the worker down.",
    hints=["No row updated is no error here."],
)
async def touch_of_an_unknown_job(ctx: Context[JobQueue]) -> None:
    ctx.expect("touch_job of an unknown job", await ctx.adapter.touch_job(ctx.new_id("no-job"))).is_none()


@clause(
    "JQ-BEAT-05",
    MUST,
    text="touch_job has no fence and no owner: any adapter on the store may refresh the lock of a running job.",
    why="Hosts drive heartbeats from a thread or process of their own.",
    hints=["No condition on worker_id."],
    after=["JQ-BEAT-01"],
)
async def touch_by_another(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    claimed = await running_job(ctx)
    await ctx.advance(MINUTE)
    await other.touch_job(claimed.job_id)
    ctx.expect_now("locked_at", (await job_of(ctx, claimed.workflow_run_id)).locked_at)


@clause(
    "JQ-BEAT-06",
    MUST,
    text="heartbeat moves locked_at of every claim that holds to now, and answers ACKNOWLEDGED for each.",
    why="A worker keeps all its leases with one call; one that is left out is lost.",
    hints=["One UPDATE joined to the given claims."],
    needs=_HEARTBEAT,
    after=["JQ-DEQ-03"],
)
async def heartbeat(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 3)
    claims = [await claim(ctx) for _ in range(3)]
    await ctx.advance(MINUTE)
    held = [(claimed.job_id, claimed.fence) for claimed in claims]
    ctx.expect("answers", await ctx.capability(SupportsHeartbeat).heartbeat(held)).equals([_HELD] * 3)
    for record in await ctx.adapter.get_jobs_by_workflow_run(run_id):
        ctx.expect_now(f"locked_at of {record.stage_id}", record.locked_at)


@clause(
    "JQ-BEAT-07",
    MUST,
    text="heartbeat answers SUPERSEDED for each claim that is lost and does not refresh its successor's lease.",
    why="A worker would go on with a job that is another's, and keep a dead successor's lease alive.",
    hints=["Each pair is fenced by id, RUNNING, started_at and attempt.", "Answers are in the order of the claims."],
    needs=_HEARTBEAT,
    after=["JQ-BEAT-06"],
)
async def heartbeat_of_lost_claims(ctx: Context[JobQueue]) -> None:
    lost = await running_job(ctx)
    await claim_again(ctx)
    held = await running_job(ctx)
    await ctx.advance(MINUTE)
    before = (await job_of(ctx, lost.workflow_run_id)).locked_at
    claims = [(claimed.job_id, claimed.fence) for claimed in (lost, held, lost)]
    answers = await ctx.capability(SupportsHeartbeat).heartbeat(claims)
    ctx.expect("answers for a lost, a held and a lost claim", answers).equals([_LOST, _HELD, _LOST])
    ctx.expect("locked_at of the successor", (await job_of(ctx, lost.workflow_run_id)).locked_at).equals(before)


@clause(
    "JQ-BEAT-08",
    MUST,
    text="heartbeat answers SUPERSEDED for a job that was put back, has ended or is gone.",
    why="Its worker has to learn that going on is in vain.",
    hints=["A pair that updates no row is SUPERSEDED, whatever the reason."],
    needs=_HEARTBEAT,
    after=["JQ-BEAT-06"],
)
async def heartbeat_of_what_is_over(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 3)
    released, completed, deleted = [await claim(ctx) for _ in range(3)]
    await ctx.adapter.complete(completed.job_id)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    await ctx.adapter.delete_by_run_and_stages(run_id, [deleted.stage_id])
    over = [(claimed.job_id, claimed.fence) for claimed in (released, completed, deleted)]
    ctx.expect("answers", await ctx.capability(SupportsHeartbeat).heartbeat(over)).equals([_LOST] * 3)
    status = (await job_of(ctx, run_id, released.stage_id)).status
    ctx.expect("status of the released job", status).equals(Status.PENDING)


@clause(
    "JQ-BEAT-09",
    MUST,
    text="heartbeat of no claims answers with no outcomes.",
    why="A worker between two jobs holds none.",
    hints=["Return before an empty statement."],
    needs=_HEARTBEAT,
)
async def heartbeat_of_nothing(ctx: Context[JobQueue]) -> None:
    ctx.expect("answers", await ctx.capability(SupportsHeartbeat).heartbeat([])).is_empty()


@clause(
    "JQ-BEAT-10",
    MUST,
    text="heartbeat leaves the fence as it is.",
    why="The worker's own acknowledgement would be SUPERSEDED after its first heartbeat.",
    hints=["started_at and attempt stay."],
    needs=_HEARTBEAT,
    after=["JQ-BEAT-06", "JQ-ACK-10"],
)
async def heartbeat_keeps_the_fence(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.advance(MINUTE)
    await ctx.capability(SupportsHeartbeat).heartbeat([(claimed.job_id, claimed.fence)])
    ctx.expect("complete", await ctx.adapter.complete(claimed.job_id, claimed.fence)).equals(_HELD)
