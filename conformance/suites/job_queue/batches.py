"""Claims and completions in batches."""

from __future__ import annotations

from typing import Final

from conformance.builders import job
from conformance.clause import MUST, Options, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import (
    HOUR,
    claim_again,
    enqueue_one,
    enqueue_stages,
    job_of,
    running_job,
    stage_ids,
    statuses,
)
from workflow_adapters.inputs.job_queue import JobQueueFairness
from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.ports.job_queue import JobQueue, SupportsCompleteMany, SupportsDequeueMany, SupportsFairness
from workflow_adapters.records.status import JobAckOutcome, Status

_DEQUEUE: Final = (SupportsDequeueMany,)
_COMPLETE: Final = (SupportsCompleteMany,)


@clause(
    "JQ-MANY-01",
    MUST,
    text="dequeue_many claims at most `limit` jobs, in the order in which single claims would.",
    why="A batch that comes back unordered runs urgent work last.",
    hints=["UPDATE … RETURNING has no order: sort the claimed rows."],
    needs=_DEQUEUE,
    after=["JQ-ORDER-01"],
)
async def in_claim_order(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    rows = (("low", 1), ("high", 9), ("middle", 5), ("lowest", 0))
    await ctx.adapter.enqueue_parallel([job(run_id, name, priority=priority) for name, priority in rows])
    claims = await ctx.capability(SupportsDequeueMany).dequeue_many(3)
    ctx.expect("stages claimed", stage_ids(claims)).equals(["high", "middle", "low"])
    ctx.expect("status of the rest", (await statuses(ctx, run_id))["lowest"]).equals(Status.PENDING)


@clause(
    "JQ-MANY-02",
    MUST,
    text="Each job of a batch is claimed as by dequeue: RUNNING, the attempt counted, with a fence that holds.",
    why="A batch that forgets a stamp hands out claims that can not be acknowledged.",
    hints=["The same SET as in dequeue."],
    needs=_DEQUEUE,
    after=["JQ-DEQ-02", "JQ-DEQ-03", "JQ-ACK-10"],
)
async def like_single_claims(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 3)
    for claimed in await ctx.capability(SupportsDequeueMany).dequeue_many(3):
        stored = await job_of(ctx, run_id, claimed.stage_id)
        ctx.expect(f"status of {claimed.stage_id}", stored.status).equals(Status.RUNNING)
        ctx.expect(f"attempt of {claimed.stage_id}", (claimed.attempt, stored.attempt)).equals((1, 1))
        ctx.expect(f"locked_at of {claimed.stage_id}", stored.locked_at).equals(claimed.started_at)
        outcome = await ctx.adapter.complete(claimed.job_id, claimed.fence)
        ctx.expect(f"complete of {claimed.stage_id}", outcome).equals(JobAckOutcome.ACKNOWLEDGED)


@clause(
    "JQ-MANY-03",
    MUST,
    text="dequeue_many claims what there is, and answers with an empty list when there is nothing or the limit is 0.",
    why="A worker with free slots must not wait until a whole batch has gathered.",
    hints=["Neither None nor an error."],
    needs=_DEQUEUE,
    after=["JQ-DEQ-01"],
)
async def fewer_than_the_limit(ctx: Context[JobQueue]) -> None:
    queue = ctx.capability(SupportsDequeueMany)
    ctx.expect("a batch of an empty queue", await queue.dequeue_many(10)).is_empty()
    await enqueue_stages(ctx, await ctx.new_run(), 2)
    ctx.expect("a batch of none", await queue.dequeue_many(0)).is_empty()
    ctx.expect("a batch of ten", await queue.dequeue_many(10)).has_length(2)


@clause(
    "JQ-MANY-04",
    MUST,
    text="dequeue_many claims due jobs only.",
    why="Delays and backoffs would hold for single claims alone.",
    hints=["The same condition as in dequeue."],
    needs=_DEQUEUE,
    after=["JQ-ORDER-04"],
)
async def due_only(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx, scheduled_for=ctx.now() + HOUR)
    due = await enqueue_one(ctx)
    claims = await ctx.capability(SupportsDequeueMany).dequeue_many(10)
    ctx.expect("runs claimed", [claimed.workflow_run_id for claimed in claims]).equals([due])


@clause(
    "JQ-MANY-05",
    MUST,
    text="dequeue_many selects by serves as dequeue does.",
    why="A worker would be handed jobs whose code it lacks, a batch at a time.",
    hints=["The same condition as in dequeue; an empty serves claims nothing."],
    needs=(SupportsDequeueMany, Requires("serves", "honoured")),
    after=["JQ-SERVES-03"],
)
async def serves(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, name, workflow_id=name) for name in ("a", "b", "c")])
    queue = ctx.capability(SupportsDequeueMany)
    ctx.expect("a batch that serves nothing", await queue.dequeue_many(10, [])).is_empty()
    claims = await queue.dequeue_many(10, [ServedDefinition(workflow_id="b", version="v1")])
    ctx.expect("stages claimed", stage_ids(claims)).equals(["b"])


@clause(
    "JQ-MANY-06",
    MUST,
    text="The fairness cap holds inside one batch.",
    why="A batch that counts running jobs once gives a whole batch to the one group that had a free slot.",
    hints=["Jobs taken earlier in the batch count as running."],
    needs=(SupportsDequeueMany, SupportsFairness),
    after=["JQ-FAIR-02"],
    options=Options(fairness=JobQueueFairness(max_concurrent_per_group=2)),
)
async def capped(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    for group in ("x", "y"):
        await ctx.adapter.enqueue_parallel([job(run_id, f"{group}{n}", group_key=group) for n in range(5)])
    claims = await ctx.capability(SupportsDequeueMany).dequeue_many(10)
    groups = sorted(claimed.group_key or "" for claimed in claims)
    ctx.expect("groups claimed in one batch", groups).equals(["x", "x", "y", "y"])


@clause(
    "JQ-MANY-07",
    MUST,
    text="complete_many completes every claim that holds, and answers ACKNOWLEDGED for each.",
    why="A batch that is completed in part leaves jobs RUNNING until their leases end, and they run again.",
    hints=["One UPDATE joined to the given claims; completed_at is stamped."],
    needs=_COMPLETE,
    after=["JQ-ACK-10"],
)
async def completed(ctx: Context[JobQueue]) -> None:
    claims = [await running_job(ctx) for _ in range(3)]
    held = [(claimed.job_id, claimed.fence) for claimed in claims]
    answers = await ctx.capability(SupportsCompleteMany).complete_many(held)
    ctx.expect("answers", answers).equals([JobAckOutcome.ACKNOWLEDGED] * 3)
    for claimed in claims:
        stored = await job_of(ctx, claimed.workflow_run_id)
        ctx.expect("status", stored.status).equals(Status.COMPLETED)
        ctx.expect_now("completed_at", stored.completed_at)


@clause(
    "JQ-MANY-08",
    MUST,
    text="complete_many fences each claim on its own: a lost one is SUPERSEDED in its place and the others complete.",
    why="One lost lease would undo, or be hidden by, the rest of the batch.",
    hints=["Answers are in the order of the claims, whatever order the rows come back in."],
    needs=_COMPLETE,
    after=["JQ-MANY-07", "JQ-ACK-11"],
)
async def each_on_its_own(ctx: Context[JobQueue]) -> None:
    lost = await running_job(ctx)
    await claim_again(ctx)
    first, deleted, second = [await running_job(ctx) for _ in range(3)]
    await ctx.adapter.delete_by_run_and_stages(deleted.workflow_run_id, [deleted.stage_id])
    claims = [(claimed.job_id, claimed.fence) for claimed in (second, lost, first, deleted)]
    answers = await ctx.capability(SupportsCompleteMany).complete_many(claims)
    held, superseded = JobAckOutcome.ACKNOWLEDGED, JobAckOutcome.SUPERSEDED
    ctx.expect("answers", answers).equals([held, superseded, held, superseded])
    status = (await job_of(ctx, lost.workflow_run_id)).status
    ctx.expect("status of the job whose claim was lost", status).equals(Status.RUNNING)


@clause(
    "JQ-MANY-09",
    MUST,
    text="complete_many of no claims answers with no outcomes.",
    why="A worker that flushes its acknowledgements often has none.",
    hints=["Return before an empty statement."],
    needs=_COMPLETE,
)
async def nothing_to_complete(ctx: Context[JobQueue]) -> None:
    ctx.expect("answers", await ctx.capability(SupportsCompleteMany).complete_many([])).is_empty()
