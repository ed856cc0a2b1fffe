"""Calls that are cancelled half-way."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.interruption import Call, Ending, Look, cancel_everywhere
from conformance.suites.job_queue.scenes import EVERY_LEASE, enqueue_one, enqueue_stages, job_of, running_job
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.status import Status

_TIME: Final = timedelta(seconds=20)
_HINTS: Final = (
    "One owner for the span from BEGIN to COMMIT; its end is shielded, against anyio and against task.cancel().",
    "A connection whose state is not known is thrown away, not given back.",
)


@clause(
    "JQ-CANCELLATION-01",
    MUST,
    text="Cancelling enqueue_parallel anywhere leaves all of its jobs or none, and the queue usable.",
    why="A client that disconnects would leave half a fan-out, an open transaction or a locked file behind.",
    hints=_HINTS,
    after=["JQ-ENQ-01"],
    time_limit=_TIME,
)
async def enqueue(ctx: Context[JobQueue]) -> None:
    async def trial() -> tuple[Call, Look]:
        run_id = await ctx.new_run()

        async def look(ending: Ending) -> None:
            stored = len(await ctx.adapter.get_jobs_by_workflow_run(run_id))
            shown = f"jobs after a cancellation by {ending.by}"
            ctx.expect(shown, stored).is_one_of(*([3] if ending.came_back else [0, 3]))
            ctx.expect("jobs enqueued afterwards", await enqueue_stages(ctx, run_id, 4)).has_length(4)
            await ctx.adapter.cancel_by_run(run_id)

        return partial(enqueue_stages, ctx, run_id, 3), look

    await cancel_everywhere(trial)


@clause(
    "JQ-CANCELLATION-02",
    MUST,
    text="Cancelling dequeue anywhere leaves the job claimed with a lease, or untouched, and the queue usable.",
    why="A job without a lease that is RUNNING is never swept: it is lost.",
    hints=_HINTS,
    after=["JQ-DEQ-01", "JQ-STALE-01"],
    time_limit=_TIME,
)
async def dequeue(ctx: Context[JobQueue]) -> None:
    async def trial() -> tuple[Call, Look]:
        run_id = await enqueue_one(ctx)

        async def look(ending: Ending) -> None:
            stored = await job_of(ctx, run_id)
            found = (stored.status, stored.attempt, stored.locked_at is not None, stored.worker_id is not None)
            claimed, untouched = (Status.RUNNING, 1, True, True), (Status.PENDING, 0, False, False)
            shown = f"status, attempt, lock and worker after a cancellation by {ending.by}"
            ctx.expect(shown, found).is_one_of(claimed, *([] if ending.came_back else [untouched]))
            await ctx.adapter.release_stale_jobs(EVERY_LEASE)
            ctx.expect("a claim afterwards", await ctx.adapter.dequeue()).is_not_none()
            await ctx.adapter.complete(stored.id)

        return ctx.adapter.dequeue, look

    await cancel_everywhere(trial)


@clause(
    "JQ-CANCELLATION-03",
    MUST,
    text="Cancelling complete anywhere leaves the job completed or running as before, and the queue usable.",
    why="A worker that is stopped while it acknowledges must not leave a job that is neither.",
    hints=_HINTS,
    after=["JQ-ACK-10"],
    time_limit=_TIME,
)
async def complete(ctx: Context[JobQueue]) -> None:
    async def trial() -> tuple[Call, Look]:
        claimed = await running_job(ctx)

        async def look(ending: Ending) -> None:
            stored = await job_of(ctx, claimed.workflow_run_id)
            found = (stored.status, stored.completed_at is not None)
            done, running = (Status.COMPLETED, True), (Status.RUNNING, False)
            shown = f"status and end after a cancellation by {ending.by}"
            ctx.expect(shown, found).is_one_of(done, *([] if ending.came_back else [running]))
            await ctx.adapter.complete(claimed.job_id)

        return partial(ctx.adapter.complete, claimed.job_id, claimed.fence), look

    await cancel_everywhere(trial)


@clause(
    "JQ-CANCELLATION-04",
    MUST,
    text="Cancelling any other call of the port anywhere leaves the queue usable.",
    why="One method that leaves a lock behind is enough: everybody waits for it.",
    hints=_HINTS,
    after=["JQ-CANCELLATION-01", "JQ-STALE-01", "JQ-CANCEL-01"],
    time_limit=_TIME,
)
async def any_other_call(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    queue, run_id, job_id = ctx.adapter, claimed.workflow_run_id, claimed.job_id
    calls: tuple[Call, ...] = (
        partial(queue.get_jobs_by_workflow_run, run_id),
        partial(queue.touch_job, job_id),
        partial(queue.fail, job_id, "broken", True),
        partial(queue.suspend, job_id, ctx.now()),
        partial(queue.release_stale_jobs, EVERY_LEASE),
        partial(queue.cancel_by_run, run_id),
        partial(queue.delete_by_run_and_stages, run_id, ["stage"]),
    )

    async def look(ending: Ending) -> None:
        del ending
        ctx.expect("jobs enqueued afterwards", await enqueue_stages(ctx, run_id, 1)).has_length(1)

    for call in calls:

        async def trial(tried: Call = call) -> tuple[Call, Look]:
            return tried, look

        await cancel_everywhere(trial)
