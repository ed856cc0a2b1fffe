"""Claims of a worker that runs some workflows and versions only."""

from __future__ import annotations

from typing import Final

from conformance.builders import job
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import A_FLOOD, HOUR, claim, drain, enqueue_one, job_of, stage_ids
from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.ports.job_queue import JobQueue

_HONOURED: Final = Requires("serves", "honoured")


def _served(workflow_id: str, version: str = "v1") -> ServedDefinition:
    return ServedDefinition(workflow_id=workflow_id, version=version)


@clause(
    "JQ-SERVES-01",
    MUST,
    text="A claim without serves, or with 'all', takes jobs of any workflow and version.",
    why="A single fleet that runs everything would leave jobs lying.",
    hints=["No serves means no filter, also for jobs that are pinned to a version."],
    after=["JQ-DEQ-01"],
)
async def anything(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    for serves in (None, "all"):
        await ctx.adapter.enqueue_parallel(
            [job(run_id, "plain", workflow_id="a"), job(run_id, "pinned", workflow_id="b", definition_version="v9")]
        )
        taken = sorted(stage_ids(await drain(ctx.adapter, serves)))
        ctx.expect(f"stages claimed with serves={serves}", taken).equals(["pinned", "plain"])


@clause(
    "JQ-SERVES-02",
    MUST,
    text="A claim with an empty serves takes nothing.",
    why="A worker that has registered no workflow yet would take jobs and fail them.",
    hints=["An empty list is not the same as None."],
    needs=[_HONOURED],
    after=["JQ-DEQ-01"],
)
async def nothing(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx)
    ctx.expect("a claim with serves=[]", await ctx.adapter.dequeue([])).is_none()
    await claim(ctx)


@clause(
    "JQ-SERVES-03",
    MUST,
    text="A job without a version is claimed by whoever serves its workflow, in any version, and by nobody else.",
    why="Jobs go to workers that lack their code, or unpinned jobs are left lying.",
    hints=["Without _definitionVersion only the workflow's name is compared."],
    needs=[_HONOURED],
    after=["JQ-DEQ-01"],
)
async def unpinned(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx, workflow_id="mine")
    ctx.expect("a claim that serves another workflow", await ctx.adapter.dequeue([_served("other")])).is_none()
    await claim(ctx, serves=[_served("mine", "whatever")])


@clause(
    "JQ-SERVES-04",
    MUST,
    text="A job that is pinned to a version is claimed only by a caller that serves that very workflow and version.",
    why="A run started on one version would be continued by the code of another.",
    hints=["Compare the pair, not its parts."],
    needs=[_HONOURED],
    after=["JQ-DEQ-01"],
)
async def pinned(ctx: Context[JobQueue]) -> None:
    for date in (None, ctx.now() - HOUR):
        await enqueue_one(ctx, workflow_id="mine", definition_version="v2", scheduled_for=date)
        ctx.expect("a claim that serves v1", await ctx.adapter.dequeue([_served("mine", "v1")])).is_none()
        ctx.expect("a claim that serves another's v2", await ctx.adapter.dequeue([_served("other", "v2")])).is_none()
        await claim(ctx, serves=[_served("mine", "v2")])


@clause(
    "JQ-SERVES-05",
    MUST,
    text="Workflow and version of two served definitions are not mixed.",
    why="A worker with a@v1 and b@v2 would take a@v2, which it does not have.",
    hints=["`workflow = ANY($1) AND version = ANY($2)` mixes them; compare pairs."],
    needs=[_HONOURED],
    after=["JQ-SERVES-04"],
)
async def pairs(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx, workflow_id="a", definition_version="v2")
    serves = [_served("a", "v1"), _served("b", "v2")]
    ctx.expect("a claim of a@v2 that serves a@v1 and b@v2", await ctx.adapter.dequeue(serves)).is_none()


@clause(
    "JQ-SERVES-06",
    MUST,
    text="Jobs that the caller does not serve do not keep served ones behind them from being claimed.",
    why="A backlog of one workflow's jobs would starve the workers of all others.",
    hints=["Filter before LIMIT, not after."],
    needs=[_HONOURED],
    after=["JQ-SERVES-03"],
)
async def foreign_jobs_at_the_head(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    for date in (None, ctx.now() - HOUR):
        flood = [
            job(run_id, f"foreign-{n}", workflow_id="other", priority=9, scheduled_for=date) for n in range(A_FLOOD)
        ]
        await ctx.adapter.enqueue_parallel([*flood, job(run_id, "mine", workflow_id="mine", scheduled_for=date)])
        claimed = await claim(ctx, serves=[_served("mine")])
        ctx.expect("stage of the claim", claimed.stage_id).equals("mine")


@clause(
    "JQ-SERVES-07",
    MUST,
    text="Among served jobs the order is that of any claim, over all served definitions.",
    why="Going through the definitions one after the other lets the first one's backlog starve the rest.",
    hints=["One ORDER BY over all served rows."],
    needs=[_HONOURED],
    after=["JQ-SERVES-03", "JQ-ORDER-01"],
)
async def order(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    rows = (("a1", "a", 1), ("b9", "b", 9), ("a7", "a", 7), ("c9", "c", 9), ("b3", "b", 3))
    await ctx.adapter.enqueue_parallel(
        [job(run_id, stage, workflow_id=workflow, priority=priority) for stage, workflow, priority in rows]
    )
    claims = await drain(ctx.adapter, [_served("a"), _served("b")])
    ctx.expect("order of the claims", stage_ids(claims)).equals(["b9", "a7", "b3", "a1"])


@clause(
    "JQ-SERVES-08",
    MUST,
    text="Names of workflows and versions are compared literally, with case.",
    why="Names that differ in case or match as patterns are different code.",
    hints=["No LIKE, no case-insensitive collation."],
    needs=[_HONOURED],
    after=["JQ-SERVES-04"],
)
async def literally(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx, workflow_id="my-flow", definition_version="v1")
    for serves in (_served("My-Flow"), _served("my_flow"), _served("my%"), _served("my-flow", "V1")):
        shown = f"{serves.workflow_id}@{serves.version}"
        ctx.expect(f"a claim that serves {shown}", await ctx.adapter.dequeue([serves])).is_none()
    await claim(ctx, serves=[_served("my-flow", "v1")])


@clause(
    "JQ-SERVES-09",
    MUST,
    text="A claim that passes over a job leaves it as it was.",
    why="Workers that decline by claiming and giving back burn its attempts and its place in the queue.",
    hints=["Select by serves inside the claim."],
    needs=[_HONOURED],
    after=["JQ-SERVES-03"],
)
async def passed_over(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx, workflow_id="other")
    before = await job_of(ctx, run_id)
    await ctx.adapter.dequeue([_served("mine")])
    ctx.expect("the job passed over", await job_of(ctx, run_id)).equals(before)
