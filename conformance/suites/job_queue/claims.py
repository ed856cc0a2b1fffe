"""What a claim takes and what it writes."""

from __future__ import annotations

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import (
    EVERY_LEASE,
    HOUR,
    MINUTE,
    claim,
    claim_again,
    drain,
    enqueue_one,
    job_of,
    running_job,
    stage_ids,
)
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import Status


@clause(
    "JQ-DEQ-01",
    MUST,
    text="dequeue hands out a pending job and leaves it RUNNING.",
    why="Nothing runs otherwise; a job that stays PENDING is handed to every worker that asks.",
    hints=["The status changes in the statement that selects the job."],
    after=["JQ-ENQ-01"],
)
async def takes_a_job(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx, stage_id="build")
    claimed = await claim(ctx)
    stored = await job_of(ctx, run_id, "build")
    ctx.expect("job_id of the claim", claimed.job_id).equals(stored.id)
    ctx.expect("workflow_run_id of the claim", claimed.workflow_run_id).equals(run_id)
    ctx.expect("stage_id of the claim", claimed.stage_id).equals("build")
    ctx.expect("status", stored.status).equals(Status.RUNNING)
    ctx.expect("a second claim", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-DEQ-02",
    MUST,
    text="A claim raises the attempt by one and hands out the raised value.",
    why="Retries are counted by it, and the fence is made of it.",
    hints=["Return the row as it is after the update."],
    after=["JQ-DEQ-01"],
)
async def counts_the_attempt(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    ctx.expect("attempt of the first claim", claimed.attempt).equals(1)
    ctx.expect("attempt stored", (await job_of(ctx, claimed.workflow_run_id)).attempt).equals(1)
    ctx.expect("attempt of the second claim", (await claim_again(ctx)).attempt).equals(2)


@clause(
    "JQ-DEQ-03",
    MUST,
    text="A claim writes one instant, now, into locked_at and started_at.",
    why="The lease must begin with the claim: an older lock is swept before the first heartbeat.",
    hints=["One clock reading for both columns."],
    after=["JQ-DEQ-01"],
)
async def stamps(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    await ctx.advance(MINUTE)
    claimed = await claim(ctx)
    stored = await job_of(ctx, run_id)
    ctx.expect_now("started_at stored", stored.started_at)
    ctx.expect("locked_at stored", stored.locked_at).equals(stored.started_at)
    ctx.expect("started_at of the claim", claimed.started_at).equals(stored.started_at)


@clause(
    "JQ-DEQ-04",
    MUST,
    text="A claim stamps a worker id on the job.",
    why="Nobody could tell which process holds a job that does not come back.",
    hints=["Without a configured id make one up once per adapter."],
    after=["JQ-DEQ-01"],
)
async def worker(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    stored = await job_of(ctx, claimed.workflow_run_id)
    ctx.expect("worker_id", stored.worker_id).satisfies("a text that is not empty", bool)


@clause(
    "JQ-DEQ-05",
    MUST,
    text="A claim hands out the workflow, priority, payload, group, version and attempt limit of its job.",
    why="A worker dispatches on them; with another row's values it runs the wrong code on the wrong input.",
    hints=["Compare DequeueResult with JobRecord, field by field."],
    after=["JQ-ENQ-03", "JQ-DEQ-01"],
)
async def contents(ctx: Context[JobQueue]) -> None:
    fields = {
        "workflow_id": "ship",
        "priority": 8,
        "payload": {"order": [1, 2]},
        "group_key": "tenant",
        "definition_version": "v3",
    }
    await enqueue_one(ctx, **fields)
    claimed = await claim(ctx)
    for name, value in fields.items():
        ctx.expect(f"{name} of the claim", getattr(claimed, name)).equals(value)
    ctx.expect("max_attempts of the claim", claimed.max_attempts).equals(3)


@clause(
    "JQ-DEQ-06",
    MUST,
    text="dequeue answers None when there is no job.",
    why="An idle worker must be able to tell an empty queue from a fault.",
    hints=["No exception, no waiting."],
)
async def empty(ctx: Context[JobQueue]) -> None:
    ctx.expect("a claim on an empty queue", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-DEQ-07",
    MUST,
    text="Only PENDING jobs are claimed: never one that is running, completed, failed or cancelled.",
    why="Finished work would run again.",
    hints=["The claim's condition is status = 'PENDING', nothing else."],
    after=["JQ-DEQ-01"],
)
async def pending_only(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, name) for name in ("running", "completed", "failed")])
    claims = {claimed.stage_id: claimed for claimed in await drain(ctx.adapter)}
    await ctx.adapter.complete(claims["completed"].job_id)
    await ctx.adapter.fail(claims["failed"].job_id, "broken")
    await ctx.adapter.cancel_by_run(await enqueue_one(ctx))
    ctx.expect("a further claim", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-DEQ-08",
    MUST,
    text="A suspended job is never claimed, not even after its next_poll_at.",
    why="A stage that waits for the outside world would start over again and again.",
    hints=["next_poll_at of a SUSPENDED job is for whoever wakes it; the claim ignores such rows."],
    after=["JQ-DEQ-01"],
)
async def never_a_suspended_one(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.suspend(claimed.job_id, ctx.now() - HOUR, claimed.fence)
    ctx.expect("a claim", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-DEQ-09",
    MUST,
    text="A claim keeps last_error of the attempt before.",
    why="The reason of the last failure would be gone as soon as the retry starts, when somebody looks for it.",
    hints=["Leave last_error out of the claim's SET."],
    after=["JQ-DEQ-01"],
)
async def keeps_last_error(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    before = (await job_of(ctx, claimed.workflow_run_id)).last_error
    ctx.expect("last_error of the released job", before).is_not_none()
    await claim(ctx)
    ctx.expect("last_error after the claim", (await job_of(ctx, claimed.workflow_run_id)).last_error).equals(before)


@clause(
    "JQ-DEQ-10",
    MUST,
    text="A claim changes the job it takes and no other.",
    why="An UPDATE that matches more rows than it returns leaves jobs RUNNING that no worker holds.",
    hints=["`id IN (SELECT … LIMIT 1)` can claim many rows under a nested-loop plan; use `id = (SELECT …)`."],
    after=["JQ-DEQ-01"],
)
async def no_other_job(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, name) for name in "abc"])
    before = {record.id: record for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)}
    claimed = await claim(ctx)
    for record in await ctx.adapter.get_jobs_by_workflow_run(run_id):
        if record.id != claimed.job_id:
            ctx.expect(f"job {record.stage_id}", record).equals(before[record.id])


@clause(
    "JQ-DEQ-11",
    MUST,
    text="A second adapter on the store claims what the first one enqueued and nothing that the first has claimed.",
    why="Two workers are two processes; a queue that lives in one of them is no queue.",
    hints=["Keep no jobs in the adapter object."],
    after=["JQ-DEQ-01"],
)
async def shared_store(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, "a"), job(run_id, "b")])
    taken = [await claim(ctx, other), await claim(ctx)]
    ctx.expect("stages claimed by the two", sorted(stage_ids(taken))).equals(["a", "b"])
    ctx.expect("a third claim", await other.dequeue()).is_none()
