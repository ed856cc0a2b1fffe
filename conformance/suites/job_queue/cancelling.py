"""Taking the jobs of a run out of the queue: cancel_by_run and delete_by_run_and_stages."""

from __future__ import annotations

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, claim, enqueue_one, enqueue_stages, job_of, statuses
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import JobAckOutcome, Status


@clause(
    "JQ-CANCEL-01",
    MUST,
    text="cancel_by_run makes the run's pending and suspended jobs CANCELLED and returns how many.",
    why="A cancelled run would go on, stage after stage.",
    hints=["Jobs that wait for a date are PENDING too."],
    after=["JQ-ENQ-01", "JQ-ACK-20"],
)
async def pending_and_suspended(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, "suspended")])
    await ctx.adapter.suspend((await claim(ctx)).job_id, ctx.now() + HOUR)
    await ctx.adapter.enqueue_parallel([job(run_id, "now"), job(run_id, "later", scheduled_for=ctx.now() + HOUR)])
    ctx.expect("jobs cancelled", await ctx.adapter.cancel_by_run(run_id)).equals(3)
    ctx.expect("statuses", set((await statuses(ctx, run_id)).values())).equals({Status.CANCELLED})
    ctx.expect("a claim", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-CANCEL-02",
    MUST,
    text="cancel_by_run stamps completed_at.",
    why="Cancelled jobs without an end are never old enough to purge.",
    hints=["CANCELLED is terminal: completed_at = now."],
    after=["JQ-CANCEL-01"],
)
async def completed_at(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    await ctx.adapter.cancel_by_run(run_id)
    ctx.expect_now("completed_at", (await job_of(ctx, run_id)).completed_at)


@clause(
    "JQ-CANCEL-03",
    MUST,
    text="cancel_by_run does not touch running jobs: their workers may still finish them.",
    why="The handler goes on anyway; its acknowledgement would be refused though the work was done.",
    hints=["RUNNING is left out, in the WHERE of the UPDATE itself."],
    after=["JQ-CANCEL-01", "JQ-ACK-10"],
)
async def running_jobs_stay(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    claimed = await claim(ctx)
    before = await job_of(ctx, run_id)
    ctx.expect("jobs cancelled", await ctx.adapter.cancel_by_run(run_id)).equals(0)
    ctx.expect("the running job", await job_of(ctx, run_id)).equals(before)
    outcome = await ctx.adapter.complete(claimed.job_id, claimed.fence)
    ctx.expect("complete", outcome).equals(JobAckOutcome.ACKNOWLEDGED)


@clause(
    "JQ-CANCEL-04",
    MUST,
    text="cancel_by_run does not touch jobs that have ended, nor count them.",
    why="The history of a run would be rewritten: completed stages would read as cancelled.",
    hints=["PENDING and SUSPENDED, nothing else."],
    after=["JQ-CANCEL-01"],
)
async def ended_jobs_stay(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 3)
    await ctx.adapter.complete((await claim(ctx)).job_id)
    await ctx.adapter.fail((await claim(ctx)).job_id, "broken")
    before = await ctx.adapter.get_jobs_by_workflow_run(run_id)
    ctx.expect("jobs cancelled", await ctx.adapter.cancel_by_run(run_id)).equals(1)
    ctx.expect("jobs cancelled by a second call", await ctx.adapter.cancel_by_run(run_id)).equals(0)
    ended = {record.id: record for record in before if record.status is not Status.PENDING}
    for record in await ctx.adapter.get_jobs_by_workflow_run(run_id):
        ctx.expect(f"job {record.stage_id}", ended.get(record.id, record)).equals(record)


@clause(
    "JQ-CANCEL-05",
    MUST,
    text="cancel_by_run leaves the jobs of every other run alone.",
    why="One user's cancellation would stop everybody's work.",
    hints=["WHERE workflow_run_id = the run."],
    after=["JQ-CANCEL-01"],
)
async def other_runs_stay(ctx: Context[JobQueue]) -> None:
    cancelled, other = await enqueue_one(ctx), await enqueue_one(ctx)
    await ctx.adapter.cancel_by_run(cancelled)
    ctx.expect("status of the other run's job", (await job_of(ctx, other)).status).equals(Status.PENDING)


@clause(
    "JQ-CANCEL-06",
    MUST,
    text="cancel_by_run of a run without jobs returns 0.",
    why="Cancelling twice, or before anything was enqueued, is no error.",
    hints=["No row updated: 0."],
)
async def no_jobs(ctx: Context[JobQueue]) -> None:
    ctx.expect("jobs cancelled", await ctx.adapter.cancel_by_run(await ctx.new_run())).equals(0)


@clause(
    "JQ-DELETE-01",
    MUST,
    text="delete_by_run_and_stages deletes the named stages' jobs, whatever their status, and returns how many.",
    why="A rerun from a stage clears what comes after it; a job left behind runs beside its successor.",
    hints=["No condition on the status."],
    after=["JQ-ENQ-01"],
)
async def deletes(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 5)
    running, completed, failed = await claim(ctx), await claim(ctx), await claim(ctx)
    await ctx.adapter.complete(completed.job_id)
    await ctx.adapter.fail(failed.job_id, "broken")
    pending = next(stage for stage, status in (await statuses(ctx, run_id)).items() if status is Status.PENDING)
    named = [running.stage_id, completed.stage_id, failed.stage_id, pending]
    ctx.expect("jobs deleted", await ctx.adapter.delete_by_run_and_stages(run_id, named)).equals(4)
    left = list(await statuses(ctx, run_id))
    ctx.expect("jobs left", left).has_length(1)
    ctx.expect("jobs left", left).satisfies("the stage that was not named", lambda stages: stages[0] not in named)


@clause(
    "JQ-DELETE-02",
    MUST,
    text="delete_by_run_and_stages leaves jobs of the same stages in other runs alone.",
    why="A rerun of one run would take the work of every other away.",
    hints=["Both the run and the stages are in the WHERE."],
    after=["JQ-DELETE-01"],
)
async def other_runs_keep_theirs(ctx: Context[JobQueue]) -> None:
    first, second = await enqueue_one(ctx), await enqueue_one(ctx)
    ctx.expect("jobs deleted", await ctx.adapter.delete_by_run_and_stages(first, ["stage"])).equals(1)
    await job_of(ctx, second)


@clause(
    "JQ-DELETE-03",
    MUST,
    text="delete_by_run_and_stages without stages deletes nothing and returns 0.",
    why="An empty list that reads as no filter deletes the whole run's jobs.",
    hints=["Return 0 before the statement."],
    after=["JQ-ENQ-01"],
)
async def no_stages(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    ctx.expect("jobs deleted", await ctx.adapter.delete_by_run_and_stages(run_id, [])).equals(0)
    await job_of(ctx, run_id)


@clause(
    "JQ-DELETE-04",
    MUST,
    text="Stages that have no job, and stages that are named twice, do not count.",
    why="The count tells the host how many jobs it took out of the queue.",
    hints=["Count deleted rows, not inputs."],
    after=["JQ-DELETE-01"],
)
async def counts_rows(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    deleted = await ctx.adapter.delete_by_run_and_stages(run_id, ["stage", "stage", "unknown"])
    ctx.expect("jobs deleted", deleted).equals(1)
