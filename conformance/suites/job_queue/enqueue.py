"""Enqueuing fresh jobs."""

from __future__ import annotations

from datetime import timedelta

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, claim, enqueue_one, enqueue_stages, job_of
from conformance.suites.values import ALIKE
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import Status


@clause(
    "JQ-ENQ-01",
    MUST,
    text="enqueue_parallel stores every job as PENDING and returns an id for each input, in the order of the inputs.",
    why="A host keeps the ids beside its stages; ids in another order would acknowledge or cancel the wrong jobs.",
    hints=["Return ids by input position, not in the order in which the database returns rows."],
)
async def ids_in_order(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    names = ["c", "a", "b"]
    ids = await ctx.adapter.enqueue_parallel([job(run_id, name) for name in names])
    ctx.expect("ids returned", ids).has_length(3)
    for name, job_id in zip(names, ids, strict=True):
        stored = await job_of(ctx, run_id, name)
        ctx.expect(f"id returned for {name}", job_id).equals(stored.id)
        ctx.expect(f"status of {name}", stored.status).equals(Status.PENDING)


@clause(
    "JQ-ENQ-02",
    MUST,
    text="A fresh job has attempt 0 of three and neither worker, lock, start, end, error nor due instant.",
    why="A fresh job that looks started or locked is swept, fenced off or never claimed.",
    hints=["Write every column at the insert; do not count on defaults of the database."],
    after=["JQ-ENQ-01"],
)
async def fresh_job(ctx: Context[JobQueue]) -> None:
    stored = await job_of(ctx, await enqueue_one(ctx))
    ctx.expect("attempt", stored.attempt).equals(0)
    ctx.expect("max_attempts", stored.max_attempts).equals(3)
    for name in ("worker_id", "locked_at", "started_at", "completed_at", "last_error", "next_poll_at"):
        ctx.expect(name, getattr(stored, name)).is_none()


@clause(
    "JQ-ENQ-03",
    MUST,
    text="A job keeps its run, stage, workflow, priority, group key and definition version as they were given.",
    why="A bulk insert that forgets a column lets jobs run in another order, group or version.",
    hints=["Compare the insert's column list with EnqueueJobInput, field by field."],
    after=["JQ-ENQ-01"],
)
async def every_field(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel(
        [job(run_id, "build", workflow_id="ship", priority=-7, group_key="tenant", definition_version="v2")]
    )
    stored = await job_of(ctx, run_id, "build")
    ctx.expect("workflow_run_id", stored.workflow_run_id).equals(run_id)
    ctx.expect("workflow_id", stored.workflow_id).equals("ship")
    ctx.expect("priority", stored.priority).equals(-7)
    ctx.expect("group_key", stored.group_key).equals("tenant")
    ctx.expect("definition_version", stored.definition_version).equals("v2")


@clause(
    "JQ-ENQ-04",
    MUST,
    text="scheduled_for becomes the job's next_poll_at.",
    why="A job that was scheduled for later would run at once.",
    hints=["Is scheduled_for bound on the bulk path too?"],
    after=["JQ-ENQ-01"],
)
async def scheduled_for(ctx: Context[JobQueue]) -> None:
    at = ctx.now() + 3 * HOUR
    stored = await job_of(ctx, await enqueue_one(ctx, scheduled_for=at))
    ctx.expect("next_poll_at", stored.next_poll_at).equals(at)


@clause(
    "JQ-ENQ-05",
    MUST,
    text="A job without a priority gets priority 5, and one without a group or version reads None for them.",
    why="Hosts of several languages share one queue; another default reorders their jobs.",
    hints=["A missing group key is None, not an empty string."],
    after=["JQ-ENQ-01"],
)
async def defaults(ctx: Context[JobQueue]) -> None:
    stored = await job_of(ctx, await enqueue_one(ctx))
    ctx.expect("priority", stored.priority).equals(5)
    ctx.expect("group_key", stored.group_key).is_none()
    ctx.expect("definition_version", stored.definition_version).is_none()


@clause(
    "JQ-ENQ-06",
    MUST,
    text="created_at and updated_at of a fresh job are the instant of the call.",
    why="The age of a job decides who is next; a stamp from another clock lets jobs overtake one another.",
    hints=["One clock for the whole call; kept to the millisecond, in UTC."],
    after=["JQ-ENQ-01"],
)
async def stamps(ctx: Context[JobQueue]) -> None:
    stored = await job_of(ctx, await enqueue_one(ctx))
    ctx.expect_now("created_at", stored.created_at)
    ctx.expect_now("updated_at", stored.updated_at)


@clause(
    "JQ-ENQ-07",
    MUST,
    text="The members that carry workflow, group and version are not in any payload that is handed out.",
    why="Handlers would see members that nobody gave them, and hand them on to the next job, where they are refused.",
    hints=["Strip _workflowId, _groupKey and _definitionVersion on reading, in claims and in listings."],
    after=["JQ-ENQ-01"],
)
async def reserved_members_are_stripped(ctx: Context[JobQueue]) -> None:
    payload = {"n": 1, "_other": True}
    run_id = await enqueue_one(ctx, payload=payload, group_key="g", definition_version="v1")
    ctx.expect("payload in the listing", (await job_of(ctx, run_id)).payload).equals(payload)
    ctx.expect("payload in the claim", (await claim(ctx)).payload).equals(payload)


@clause(
    "JQ-ENQ-08",
    MUST,
    text="A job without a payload reads back an empty object.",
    why="A handler that reads a member of None crashes on a job that carries nothing.",
    hints=["Store an object in any case: it holds the workflow's id."],
    after=["JQ-ENQ-01"],
)
async def no_payload(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    ctx.expect("payload in the listing", (await job_of(ctx, run_id)).payload).equals({})
    ctx.expect("payload in the claim", (await claim(ctx)).payload).equals({})


@clause(
    "JQ-ENQ-09",
    MUST,
    text="Enqueuing nothing returns no ids.",
    why="A stage without successors must not fail at the end of its work.",
    hints=["An INSERT without rows is a syntax error: return before it."],
)
async def nothing(ctx: Context[JobQueue]) -> None:
    ctx.expect("ids returned", await ctx.adapter.enqueue_parallel([])).is_empty()


@clause(
    "JQ-ENQ-10",
    MUST,
    text="Jobs of one stage name in two runs are two jobs.",
    why="A key on the stage alone lets one run replace the work of every other.",
    hints=["The unique key is (workflow_run_id, stage_id)."],
    after=["JQ-ENQ-01"],
)
async def the_run_is_part_of_the_key(ctx: Context[JobQueue]) -> None:
    first = await enqueue_one(ctx)
    second = await enqueue_one(ctx)
    ctx.expect("ids of the two jobs", (await job_of(ctx, first)).id).differs_from((await job_of(ctx, second)).id)
    if ctx.may_name_run():
        fresh = ctx.new_id("run")
        ids = await ctx.adapter.enqueue_parallel([job(f"{fresh}{first}", second) for first, second in ALIKE])
        ctx.expect("different ids of jobs whose pairs look alike", len(set(ids))).equals(len(ALIKE))
        runs = dict.fromkeys(f"{fresh}{first}" for first, _ in ALIKE)
        stored = [found for run_id in runs for found in await ctx.adapter.get_jobs_by_workflow_run(run_id)]
        ctx.expect("jobs whose pairs look alike", len(stored)).equals(len(ALIKE))


@clause(
    "JQ-ENQ-11",
    MUST,
    text="One call stores 10,000 jobs and returns their ids in order.",
    why="A fan-out of this size must not meet the database's limit of bound parameters half-way.",
    hints=["Pass arrays (unnest, json_each), or work in chunks inside one transaction."],
    after=["JQ-ENQ-01"],
    time_limit=timedelta(seconds=30),
)
async def ten_thousand(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    ids = await enqueue_stages(ctx, run_id, 10_000)
    stored = {record.stage_id: record.id for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)}
    ctx.expect("distinct ids returned", len(set(ids))).equals(10_000)
    ctx.expect("jobs stored", len(stored)).equals(10_000)
    for number in (0, 999, 5_000, 9_999):
        ctx.expect(f"id returned for job {number}", ids[number]).equals(stored[f"stage-{number}"])
