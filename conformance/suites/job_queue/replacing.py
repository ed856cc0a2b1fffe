"""Enqueuing a pair of run and stage that is there already."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import HOUR, MINUTE, claim, claim_again, enqueue_one, job_of, running_job
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import Status


async def _leave_pending(ctx: Context[JobQueue], run_id: str) -> None:
    del ctx, run_id


async def _run(ctx: Context[JobQueue], run_id: str) -> None:
    del run_id
    await claim(ctx)


async def _suspend(ctx: Context[JobQueue], run_id: str) -> None:
    del run_id
    await ctx.adapter.suspend((await claim(ctx)).job_id, ctx.now() + HOUR)


async def _complete(ctx: Context[JobQueue], run_id: str) -> None:
    del run_id
    await ctx.adapter.complete((await claim(ctx)).job_id)


async def _fail(ctx: Context[JobQueue], run_id: str) -> None:
    del run_id
    await ctx.adapter.fail((await claim(ctx)).job_id, "broken")


async def _cancel(ctx: Context[JobQueue], run_id: str) -> None:
    await ctx.adapter.cancel_by_run(run_id)


_WAYS: Final[dict[Status, Callable[[Context[JobQueue], str], Awaitable[None]]]] = {
    Status.PENDING: _leave_pending,
    Status.RUNNING: _run,
    Status.SUSPENDED: _suspend,
    Status.COMPLETED: _complete,
    Status.FAILED: _fail,
    Status.CANCELLED: _cancel,
}


@clause(
    "JQ-ENQ-12",
    MUST,
    text="Enqueuing a pair again leaves one job of it, under a new id.",
    why="A retried call would start the stage twice; the old id would let a late acknowledgement through.",
    hints=["ON CONFLICT (run, stage) DO UPDATE must also set the id."],
    after=["JQ-ENQ-01"],
)
async def one_job_per_pair(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    old = await job_of(ctx, run_id)
    ids = await ctx.adapter.enqueue_parallel([job(run_id)])
    new = await job_of(ctx, run_id)
    ctx.expect("id of the job", new.id).differs_from(old.id)
    ctx.expect("ids returned", ids).equals([new.id])


@clause(
    "JQ-ENQ-13",
    MUST,
    text="A pair enqueued again becomes a PENDING job with attempt 0, whatever status its job had.",
    why="A stage that is run again after a failure, a suspension or a cancellation would never be picked up.",
    hints=["No condition on the old row's status.", "RUNNING and COMPLETED jobs are replaced as well."],
    after=["JQ-ENQ-12"],
)
async def whatever_the_status(ctx: Context[JobQueue]) -> None:
    for status, reach in _WAYS.items():
        run_id = await enqueue_one(ctx)
        await reach(ctx, run_id)
        ctx.expect("status before", (await job_of(ctx, run_id)).status).equals(status)
        await ctx.adapter.enqueue_parallel([job(run_id)])
        stored = await job_of(ctx, run_id)
        ctx.expect(f"status of the job that was {status}", stored.status).equals(Status.PENDING)
        ctx.expect(f"attempt of the job that was {status}", stored.attempt).equals(0)
        await ctx.adapter.cancel_by_run(run_id)


@clause(
    "JQ-ENQ-14",
    MUST,
    text="A replaced job keeps nothing of the old one's worker, lock, start, end and error.",
    why="Left-over stamps of the last life make a sweep or a fence decide about the new one.",
    hints=["The update on conflict sets each of these columns to NULL."],
    after=["JQ-ENQ-12"],
)
async def nothing_is_left(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.fail(claimed.job_id, "broken")
    await ctx.adapter.enqueue_parallel([job(claimed.workflow_run_id)])
    stored = await job_of(ctx, claimed.workflow_run_id)
    for name in ("worker_id", "locked_at", "started_at", "completed_at", "last_error"):
        ctx.expect(f"{name} of the replaced job", getattr(stored, name)).is_none()


@clause(
    "JQ-ENQ-15",
    MUST,
    text="next_poll_at of a replaced job is the new scheduled_for, and None without one.",
    why="A stage run again now would keep the old date and wait for it.",
    hints=["Write NULL, not COALESCE(new, old)."],
    after=["JQ-ENQ-12"],
)
async def due_instant_is_replaced(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx, scheduled_for=ctx.now() + HOUR)
    await ctx.adapter.enqueue_parallel([job(run_id)])
    ctx.expect("next_poll_at without a date", (await job_of(ctx, run_id)).next_poll_at).is_none()
    at = ctx.now() + 2 * HOUR
    await ctx.adapter.enqueue_parallel([job(run_id, scheduled_for=at)])
    ctx.expect("next_poll_at with a date", (await job_of(ctx, run_id)).next_poll_at).equals(at)


@clause(
    "JQ-ENQ-16",
    MUST,
    text="A replaced job carries the new priority, payload, workflow, group and version.",
    why="A stage run again with other input would work on the old one.",
    hints=["The update on conflict sets every column that the insert sets."],
    after=["JQ-ENQ-12"],
)
async def contents_are_replaced(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx, priority=1, payload={"old": 1}, group_key="old", definition_version="v1")
    new: dict[str, Any] = {
        "priority": 9,
        "payload": {"new": 2},
        "workflow_id": "other",
        "group_key": None,
        "definition_version": "v2",
    }
    await ctx.adapter.enqueue_parallel([job(run_id, **new)])
    stored = await job_of(ctx, run_id)
    for name, value in new.items():
        ctx.expect(f"{name} of the replaced job", getattr(stored, name)).equals(value)


@clause(
    "JQ-ENQ-17",
    MUST,
    text="A replaced job is as young as the call that replaced it.",
    why="A stage run again would overtake the jobs that have been waiting since before.",
    hints=["Write created_at on conflict too."],
    after=["JQ-ENQ-12"],
)
async def created_at_is_new(ctx: Context[JobQueue]) -> None:
    run_id = await enqueue_one(ctx)
    old = await job_of(ctx, run_id)
    await ctx.advance(MINUTE)
    await ctx.adapter.enqueue_parallel([job(run_id)])
    new = await job_of(ctx, run_id)
    ctx.expect_now("created_at of the replaced job", new.created_at)
    ctx.expect("created_at of the replaced job", new.created_at).is_greater_than(old.created_at)


@clause(
    "JQ-ENQ-18",
    MUST,
    text="A pair repeated in one call makes one job, and each of its positions gets that job's id.",
    why="Ids that are fewer than the inputs, or of rows that did not survive, get zipped to the wrong stages.",
    hints=["PostgreSQL refuses to update a row twice in one ON CONFLICT: merge the inputs first."],
    after=["JQ-ENQ-01"],
)
async def repeated_in_one_call(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    ids = await ctx.adapter.enqueue_parallel([job(run_id, "a"), job(run_id, "b"), job(run_id, "a")])
    a, b = await job_of(ctx, run_id, "a"), await job_of(ctx, run_id, "b")
    ctx.expect("ids returned for a, b, a", ids).equals([a.id, b.id, a.id])


@clause(
    "JQ-ENQ-19",
    MUST,
    text="Of a pair repeated in one call the last input wins.",
    why="The caller's latest decision about priority or date would be lost without a word.",
    hints=["ON CONFLICT DO NOTHING keeps the first."],
    after=["JQ-ENQ-18"],
)
async def the_last_input_wins(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, payload={"n": n}, priority=n) for n in (1, 3, 2)])
    stored = await job_of(ctx, run_id)
    ctx.expect("payload", stored.payload).equals({"n": 2})
    ctx.expect("priority", stored.priority).equals(2)


@clause(
    "JQ-ENQ-20",
    MUST,
    text="A job that was enqueued again is claimed as a first attempt.",
    why="Attempts spent in an earlier life would leave the new one without retries.",
    hints=["attempt is reset to 0, also when the old job had used up its attempts."],
    after=["JQ-ENQ-12"],
)
async def claimed_as_the_first_attempt(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    await claim_again(ctx)
    await ctx.adapter.enqueue_parallel([job(claimed.workflow_run_id)])
    ctx.expect("attempt of the claim", (await claim(ctx)).attempt).equals(1)
