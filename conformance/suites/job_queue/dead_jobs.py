"""Jobs that no worker could run, because their payload does not say for which workflow they are."""

from __future__ import annotations

from typing import Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import MINUTE, claim, enqueue_one, job_of
from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import Status

_DEAD: Final[dict[str, JsonValue]] = {
    "null": None,
    "a text": "flow",
    "a number": 7,
    "a boolean": True,
    "an array": [{"_workflowId": "flow"}],
    "an object without _workflowId": {"n": 1},
    "an object whose _workflowId is a number": {"_workflowId": 7},
    "an object whose _workflowId is null": {"_workflowId": None},
}


async def _dead_job(ctx: Context[JobQueue], payload: JsonValue) -> str:
    run_id = await enqueue_one(ctx, priority=9)
    await ctx.store_payload((await job_of(ctx, run_id)).id, payload)
    return run_id


@clause(
    "JQ-DEAD-01",
    MUST,
    text="A claim that meets a payload without a workflow fails that job with a reason and takes the next one.",
    why="One such row, written by hand or by another host, would stop the queue or kill every worker that reads it.",
    hints=["Read the payload before the row is handed out, and go on in a bounded loop."],
    after=["JQ-DEQ-01"],
)
async def failed_and_passed(ctx: Context[JobQueue]) -> None:
    for shown, payload in _DEAD.items():
        dead = await _dead_job(ctx, payload)
        healthy = await enqueue_one(ctx, priority=1)
        claimed = await claim(ctx)
        ctx.expect(f"run of the claim behind {shown}", claimed.workflow_run_id).equals(healthy)
        stored = await job_of(ctx, dead)
        ctx.expect(f"status of the job with {shown}", stored.status).equals(Status.FAILED)
        ctx.expect(f"last_error of the job with {shown}", stored.last_error).satisfies("a reason", bool)
        ctx.expect(f"completed_at of the job with {shown}", stored.completed_at).is_not_none()
        await ctx.adapter.complete(claimed.job_id)


@clause(
    "JQ-DEAD-02",
    MUST,
    text="A dead job is failed by a claim with any serves that is not empty.",
    why="Nobody serves a job without a workflow: it would lie in the queue for ever.",
    hints=["Dead rows pass the filter of serves."],
    needs=[Requires("serves", "honoured")],
    after=["JQ-DEAD-01"],
)
async def served_by_everybody(ctx: Context[JobQueue]) -> None:
    for shown, payload in _DEAD.items():
        run_id = await _dead_job(ctx, payload)
        serves = [ServedDefinition(workflow_id="mine", version="v1")]
        ctx.expect(f"a claim that meets {shown}", await ctx.adapter.dequeue(serves)).is_none()
        status = (await job_of(ctx, run_id)).status
        ctx.expect(f"status of the job with {shown}", status).equals(Status.FAILED)


@clause(
    "JQ-DEAD-03",
    MUST,
    text="A claim with an empty serves leaves a dead job alone.",
    why="A caller that asked for nothing would change the queue.",
    hints=["An empty serves returns before anything is selected."],
    needs=[Requires("serves", "honoured")],
    after=["JQ-DEAD-01"],
)
async def not_by_nobody(ctx: Context[JobQueue]) -> None:
    run_id = await _dead_job(ctx, None)
    await ctx.adapter.dequeue([])
    ctx.expect("status", (await job_of(ctx, run_id)).status).equals(Status.PENDING)


@clause(
    "JQ-DEAD-04",
    MUST,
    text="get_jobs_by_workflow_run shows a dead job with payload {} and workflow_id ''.",
    why="Whoever looks for the cause would meet an error instead of the row.",
    hints=["Reading a stored payload must not assume an object."],
    after=["JQ-ENQ-01"],
)
async def listed(ctx: Context[JobQueue]) -> None:
    for shown, payload in _DEAD.items():
        stored = await job_of(ctx, await _dead_job(ctx, payload))
        ctx.expect(f"payload listed for {shown}", stored.payload).equals({})
        ctx.expect(f"workflow_id listed for {shown}", stored.workflow_id).equals("")


@clause(
    "JQ-DEAD-05",
    MUST,
    text="A queue of dead jobs alone ends as failed jobs and the answer None.",
    why="A claim that gives up after the first dead row reports an empty queue with work behind it, or loops for ever.",
    hints=["The loop ends when nothing claimable is left."],
    after=["JQ-DEAD-01"],
)
async def dead_jobs_alone(ctx: Context[JobQueue]) -> None:
    runs = [await _dead_job(ctx, payload) for payload in _DEAD.values()]
    ctx.expect("a claim", await ctx.adapter.dequeue()).is_none()
    left = [status for run_id in runs if (status := (await job_of(ctx, run_id)).status) is not Status.FAILED]
    ctx.expect("dead jobs that are not FAILED", left).is_empty()
    await ctx.advance(MINUTE)
    ctx.expect("a claim a minute later", await ctx.adapter.dequeue()).is_none()
