"""get_jobs_by_workflow_run, and whose id claims carry."""

from __future__ import annotations

from typing import Final

from conformance.builders import job
from conformance.clause import MUST, Options
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, MINUTE, enqueue_one, job_of, running_job
from workflow_adapters.ports.job_queue import JobQueue, SupportsWorkerAdoption

_ADOPTION: Final = (SupportsWorkerAdoption,)


@clause(
    "JQ-LIST-01",
    MUST,
    text="get_jobs_by_workflow_run lists the jobs of the run and of no other.",
    why="A console would show, and an operator act on, somebody else's work.",
    hints=["WHERE workflow_run_id = the run."],
    after=["JQ-ENQ-01"],
)
async def jobs_of_the_run(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx, stage_id="mine")
    await enqueue_one(ctx, stage_id="other")
    listed = [record.stage_id for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)]
    ctx.expect("stages listed", listed).equals(["mine"])


@clause(
    "JQ-LIST-02",
    MUST,
    text="get_jobs_by_workflow_run lists the oldest job first.",
    why="Timelines are drawn from it; another order tells another story.",
    hints=["ORDER BY created_at, id."],
    after=["JQ-ENQ-17"],
)
async def oldest_first(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    for name in ("c", "a", "b", "c"):
        await ctx.adapter.enqueue_parallel([job(run_id, name)])
        await ctx.advance(MINUTE)
    await ctx.advance(-HOUR)
    await ctx.adapter.enqueue_parallel([job(run_id, "early")])
    listed = [record.stage_id for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)]
    ctx.expect("stages listed, c having been enqueued again", listed).equals(["early", "a", "b", "c"])


@clause(
    "JQ-LIST-03",
    MUST,
    text="Jobs of one instant are listed by id, byte by byte.",
    why="Pages and comparisons need one order, the same on every database and in every collation.",
    hints=['ORDER BY created_at, id; COLLATE "C" where the database\'s collation is another.'],
    after=["JQ-ENQ-01"],
)
async def by_id(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, name) for name in "hgfedcba"])
    listed = [(record.created_at, record.id) for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)]
    ctx.expect("instants and ids listed", listed).equals(sorted(listed))


@clause(
    "JQ-LIST-04",
    MUST,
    text="A run without jobs lists none.",
    why="Asking about a run that has not started is no error.",
    hints=["An empty list, not None."],
)
async def no_jobs(ctx: Context[JobQueue]) -> None:
    ctx.expect("jobs listed", await ctx.adapter.get_jobs_by_workflow_run(ctx.new_id("run"))).is_empty()


@clause(
    "JQ-WORKER-01",
    MUST,
    text="A queue without a configured worker id adopts the host's, returns it, and stamps claims with it.",
    why="Logs of the host and rows of the queue would name two different workers.",
    hints=["adopt_worker_id is synchronous and takes effect from the next claim on."],
    needs=_ADOPTION,
    after=["JQ-DEQ-04"],
)
async def adopted(ctx: Context[JobQueue]) -> None:
    ctx.expect("the id adopted", ctx.capability(SupportsWorkerAdoption).adopt_worker_id("host-7")).equals("host-7")
    claimed = await running_job(ctx)
    ctx.expect("worker_id", (await job_of(ctx, claimed.workflow_run_id)).worker_id).equals("host-7")


@clause(
    "JQ-WORKER-02",
    MUST,
    text="A configured worker id is kept: adopt_worker_id returns it, and claims carry it.",
    why="An id chosen by the operator would be overwritten by a generated one.",
    hints=["Adopt only where no id was configured."],
    needs=_ADOPTION,
    after=["JQ-DEQ-04"],
    options=Options(worker_id="configured-1"),
)
async def configured(ctx: Context[JobQueue]) -> None:
    kept = ctx.capability(SupportsWorkerAdoption).adopt_worker_id("host-7")
    ctx.expect("the id that stays", kept).equals("configured-1")
    claimed = await running_job(ctx)
    ctx.expect("worker_id", (await job_of(ctx, claimed.workflow_run_id)).worker_id).equals("configured-1")
