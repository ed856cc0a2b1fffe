"""The fairness cap: how many jobs of a group may run at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from conformance.builders import job
from conformance.clause import MUST, Options
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import A_FLOOD, EVERY_LEASE, HOUR, claim, drain, enqueue_one, stage_ids
from workflow_adapters.inputs.job_queue import JobQueueFairness
from workflow_adapters.ports.job_queue import JobQueue, SupportsFairness
from workflow_adapters.records.job_queue import DequeueResult

_NEEDS: Final = (SupportsFairness,)
_ONE: Final = Options(fairness=JobQueueFairness(max_concurrent_per_group=1))
_TWO: Final = Options(fairness=JobQueueFairness(max_concurrent_per_group=2))


@clause(
    "JQ-FAIR-01",
    MUST,
    text="Without a cap any number of jobs of one group run at once, and fairness_group_by is None.",
    why="Groups are labels until somebody asks for a cap.",
    hints=["Fairness is opt-in at construction."],
    needs=_NEEDS,
    after=["JQ-DEQ-01"],
)
async def off(ctx: Context[JobQueue]) -> None:
    ctx.expect("fairness_group_by", ctx.capability(SupportsFairness).fairness_group_by).is_none()
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, f"stage-{n}", group_key="x") for n in range(5)])
    ctx.expect("jobs claimed", await drain(ctx.adapter)).has_length(5)


@clause(
    "JQ-FAIR-02",
    MUST,
    text="A group that has as many running jobs as the cap allows is left out of the claim.",
    why="One tenant would take every worker.",
    hints=["Count the group's RUNNING jobs in what decides the claim."],
    needs=_NEEDS,
    after=["JQ-DEQ-01"],
    options=_TWO,
)
async def left_out(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, f"stage-{n}", group_key="x") for n in range(4)])
    ctx.expect("jobs claimed with a cap of two", await drain(ctx.adapter)).has_length(2)


@clause(
    "JQ-FAIR-03",
    MUST,
    text="fairness_group_by is the configured path, `_groupKey` by default.",
    why="Hosts put the group where the queue looks for it.",
    hints=["The property gives JobQueueFairness.group_by."],
    needs=_NEEDS,
    options=_ONE,
)
async def path(ctx: Context[JobQueue]) -> None:
    ctx.expect("fairness_group_by", ctx.capability(SupportsFairness).fairness_group_by).equals("_groupKey")


@clause(
    "JQ-FAIR-04",
    MUST,
    text="Jobs of a full group do not keep other groups' jobs behind them from being claimed.",
    why="One tenant's backlog at the head would stop the queue for everybody, though workers are idle.",
    hints=["Leave full groups out before LIMIT, not after."],
    needs=_NEEDS,
    after=["JQ-FAIR-02"],
    options=_ONE,
)
async def full_group_at_the_head(ctx: Context[JobQueue]) -> None:
    for date in (None, ctx.now() - HOUR):
        run_id, group = await ctx.new_run(), ctx.new_id("group")
        fields: dict[str, Any] = {"group_key": group, "priority": 9, "scheduled_for": date}
        flood = [job(run_id, f"flood-{n}", **fields) for n in range(A_FLOOD)]
        other = job(run_id, "other", group_key="other", scheduled_for=date)
        await ctx.adapter.enqueue_parallel([*flood, other])
        await claim(ctx)
        claimed = await claim(ctx)
        ctx.expect("stage of the claim", claimed.stage_id).equals("other")
        await ctx.adapter.complete(claimed.job_id)


@clause(
    "JQ-FAIR-05",
    MUST,
    text="The cap does not reorder: among groups with room the order is that of any claim.",
    why="A round robin over groups makes urgent work wait for everybody else's turn.",
    hints=["It is a filter; the ORDER BY stays as it is."],
    needs=_NEEDS,
    after=["JQ-FAIR-02", "JQ-ORDER-01"],
    options=_TWO,
)
async def no_reordering(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    rows = (("x9", "x", 9), ("y8", "y", 8), ("x7", "x", 7), ("x6", "x", 6), ("y5", "y", 5), ("z1", "z", 1))
    await ctx.adapter.enqueue_parallel(
        [job(run_id, name, group_key=group, priority=priority) for name, group, priority in rows]
    )
    ctx.expect("order of the claims", stage_ids(await drain(ctx.adapter))).equals(["x9", "y8", "x7", "y5", "z1"])


@clause(
    "JQ-FAIR-06",
    MUST,
    text="Running jobs count for their group whoever claimed them: another adapter on the store respects the cap.",
    why="With a count per process the cap is multiplied by the number of processes.",
    hints=["Count rows, not claims of this adapter."],
    needs=_NEEDS,
    after=["JQ-FAIR-02"],
    options=_ONE,
)
async def over_adapters(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    await enqueue_one(ctx, group_key="x")
    await enqueue_one(ctx, group_key="x")
    await claim(ctx)
    ctx.expect("a claim of the other adapter", await other.dequeue()).is_none()


async def _complete(ctx: Context[JobQueue], claimed: DequeueResult) -> None:
    await ctx.adapter.complete(claimed.job_id, claimed.fence)


async def _fail(ctx: Context[JobQueue], claimed: DequeueResult) -> None:
    await ctx.adapter.fail(claimed.job_id, "broken", False, claimed.fence)


async def _retry(ctx: Context[JobQueue], claimed: DequeueResult) -> None:
    await ctx.adapter.fail(claimed.job_id, "broken", True, claimed.fence)


async def _suspend(ctx: Context[JobQueue], claimed: DequeueResult) -> None:
    await ctx.adapter.suspend(claimed.job_id, ctx.now() + HOUR, claimed.fence)


async def _release(ctx: Context[JobQueue], claimed: DequeueResult) -> None:
    del claimed
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)


async def _delete(ctx: Context[JobQueue], claimed: DequeueResult) -> None:
    await ctx.adapter.delete_by_run_and_stages(claimed.workflow_run_id, [claimed.stage_id])


async def _enqueue_again(ctx: Context[JobQueue], claimed: DequeueResult) -> None:
    await ctx.adapter.enqueue_parallel([job(claimed.workflow_run_id, claimed.stage_id, group_key="elsewhere")])


_WAYS_OUT: Final[dict[str, Callable[[Context[JobQueue], DequeueResult], Awaitable[None]]]] = {
    "complete": _complete,
    "fail": _fail,
    "fail with should_retry": _retry,
    "suspend": _suspend,
    "release_stale_jobs": _release,
    "delete_by_run_and_stages": _delete,
    "enqueue_parallel of the same pair": _enqueue_again,
}


@clause(
    "JQ-FAIR-07",
    MUST,
    text="A job that stops running gives its slot back, in whichever way it stops.",
    why="A slot that is lost once is lost for good: the group stands still with nothing running.",
    hints=["A counter must follow every change of status, deletions and replacements too; better count rows."],
    needs=_NEEDS,
    after=["JQ-FAIR-02"],
    options=_ONE,
)
async def slots_come_back(ctx: Context[JobQueue]) -> None:
    for shown, leave in _WAYS_OUT.items():
        group = ctx.new_id("group")
        await enqueue_one(ctx, group_key=group)
        claimed = await claim(ctx)
        waiting = await enqueue_one(ctx, group_key=group, priority=9)
        ctx.expect("a claim while the group is full", await ctx.adapter.dequeue()).is_none()
        await leave(ctx, claimed)
        next_claim = ctx.expect(f"a claim after {shown}", await ctx.adapter.dequeue()).is_not_none()
        ctx.expect(f"run of the claim after {shown}", next_claim.workflow_run_id).equals(waiting)
        await ctx.adapter.complete(next_claim.job_id)
        await ctx.adapter.cancel_by_run(claimed.workflow_run_id)


@clause(
    "JQ-FAIR-08",
    MUST,
    text="Only running jobs count: waiting, suspended and finished jobs take no slot.",
    why="A group with a long history or a long queue would stand still.",
    hints=["status = 'RUNNING' in the count."],
    needs=_NEEDS,
    after=["JQ-FAIR-02"],
    options=_TWO,
)
async def only_running_jobs_count(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, f"stage-{n}", group_key="x") for n in range(8)])
    await ctx.adapter.complete((await claim(ctx)).job_id)
    await ctx.adapter.fail((await claim(ctx)).job_id, "broken")
    await ctx.adapter.suspend((await claim(ctx)).job_id, ctx.now() + HOUR)
    ctx.expect("jobs claimed with a cap of two", await drain(ctx.adapter)).has_length(2)
