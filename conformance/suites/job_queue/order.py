"""Which job is next, and when a job is due."""

from __future__ import annotations

from conformance.builders import job
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import A_FLOOD, HOUR, MINUTE, MS, claim, drain, enqueue_one, stage_ids
from workflow_adapters.ports.job_queue import JobQueue


@clause(
    "JQ-ORDER-01",
    MUST,
    text="The job of the highest priority is claimed first, however old the others are.",
    why="Urgent work would wait behind a backlog.",
    hints=["ORDER BY priority DESC: a larger number is more urgent."],
    after=["JQ-DEQ-01"],
)
async def highest_priority(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    for name, priority in (("low", -3), ("middle", 5), ("high", 10), ("zero", 0)):
        await ctx.adapter.enqueue_parallel([job(run_id, name, priority=priority)])
    ctx.expect("order of the claims", stage_ids(await drain(ctx.adapter))).equals(["high", "middle", "zero", "low"])


@clause(
    "JQ-ORDER-02",
    MUST,
    text="Among jobs of one priority the oldest is claimed first.",
    why="In any other order some jobs wait for ever under load.",
    hints=["ORDER BY created_at, ascending; next_poll_at has no say in the order."],
    after=["JQ-DEQ-01"],
)
async def oldest(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    dates = {"c": None, "a": ctx.now() - HOUR, "b": ctx.now() - 2 * HOUR}
    for name, date in dates.items():
        await ctx.adapter.enqueue_parallel([job(run_id, name, scheduled_for=date)])
        await ctx.advance(MINUTE)
    ctx.expect("order of the claims", stage_ids(await drain(ctx.adapter))).equals(["c", "a", "b"])


@clause(
    "JQ-ORDER-03",
    MUST,
    text="Jobs of one priority that were enqueued in one call are claimed in the order of the call.",
    why="Hosts list the stages in the order in which they want them; a bulk insert has one instant for all.",
    hints=["Order by id last, with ids that sort in the order of their making."],
    needs=[Requires("job_order", "insertion")],
    after=["JQ-DEQ-01"],
)
async def insertion_order(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    names = ["d", "a", "c", "b", "f", "e"]
    await ctx.adapter.enqueue_parallel([job(run_id, name) for name in names])
    ctx.expect("order of the claims", stage_ids(await drain(ctx.adapter))).equals(names)


@clause(
    "JQ-ORDER-04",
    MUST,
    text="A job whose due instant lies ahead is not claimed.",
    why="Delays and retry backoffs would be ignored.",
    hints=["next_poll_at IS NULL OR next_poll_at <= now."],
    after=["JQ-ENQ-04", "JQ-DEQ-01"],
)
async def not_due(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx, scheduled_for=ctx.now() + HOUR)
    ctx.expect("a claim before the job is due", await ctx.adapter.dequeue()).is_none()


@clause(
    "JQ-ORDER-05",
    MUST,
    text="A job whose due instant has passed is claimed.",
    why="Scheduled jobs and retries would never run.",
    hints=["Compare instants of one zone: a due instant kept in local time is hours away."],
    after=["JQ-ENQ-04", "JQ-DEQ-01"],
)
async def due(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx, scheduled_for=ctx.now() - MINUTE)
    await claim(ctx)


@clause(
    "JQ-ORDER-06",
    MUST,
    text="A job is due from its very instant on, and not a millisecond earlier.",
    why="With < instead of <= a job that is due now waits for another poll.",
    hints=["next_poll_at <= now, at whole milliseconds."],
    needs=[Requires("clock", "caller")],
    after=["JQ-ORDER-04", "JQ-ORDER-05"],
)
async def due_to_the_millisecond(ctx: Context[JobQueue]) -> None:
    await enqueue_one(ctx, scheduled_for=ctx.now() + MINUTE)
    await ctx.advance(MINUTE - MS)
    ctx.expect("a claim one millisecond early", await ctx.adapter.dequeue()).is_none()
    await ctx.advance(MS)
    await claim(ctx)


@clause(
    "JQ-ORDER-07",
    MUST,
    text="Jobs that are not due do not keep due ones behind them from being claimed.",
    why="A handful of delayed urgent jobs at the head would stop the queue.",
    hints=["Filter by due instant before LIMIT, not after."],
    after=["JQ-ORDER-04"],
)
async def not_due_at_the_head(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    later = [job(run_id, f"later-{n}", priority=9, scheduled_for=ctx.now() + HOUR) for n in range(A_FLOOD)]
    await ctx.adapter.enqueue_parallel([*later, job(run_id, "now", priority=1)])
    ctx.expect("stage of the claim", (await claim(ctx)).stage_id).equals("now")


@clause(
    "JQ-ORDER-08",
    MUST,
    text="A due date does not move a job in front of an older one, nor of one with a higher priority.",
    why="Ordering by due instant lets delayed jobs overtake the rest.",
    hints=["Undated and dated jobs that are due form one queue: priority, created_at, insertion order."],
    after=["JQ-ORDER-05"],
)
async def dated_and_undated_are_one_queue(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    at = ctx.now() - HOUR
    await ctx.adapter.enqueue_parallel([job(run_id, "undated")])
    await ctx.advance(MINUTE)
    await ctx.adapter.enqueue_parallel([job(run_id, "dated", scheduled_for=at)])
    await ctx.adapter.enqueue_parallel([job(run_id, "urgent", priority=6)])
    await ctx.adapter.enqueue_parallel([job(run_id, "urgent and dated", priority=7, scheduled_for=at)])
    claims = stage_ids(await drain(ctx.adapter))
    ctx.expect("order of the claims", claims).equals(["urgent and dated", "urgent", "undated", "dated"])
