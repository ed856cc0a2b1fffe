"""The fairness cap with many claimers at once."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Final

from anyio.lowlevel import checkpoint

from conformance.builders import job
from conformance.clause import MUST, Options
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import drain
from workflow_adapters.errors import BackendBusyError
from workflow_adapters.inputs.job_queue import JobQueueFairness
from workflow_adapters.ports.job_queue import JobQueue, SupportsFairness
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import Status

_NEEDS: Final = (SupportsFairness,)
_CAP: Final = 2
_OPTIONS: Final = Options(fairness=JobQueueFairness(max_concurrent_per_group=_CAP))
_GROUPS: Final = ("x", "y", "z")
_TIME: Final = timedelta(seconds=20)


async def _enqueue(ctx: Context[JobQueue], per_group: int) -> str:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel(
        [job(run_id, f"{group}-{number}", group_key=group) for group in _GROUPS for number in range(per_group)]
    )
    return run_id


async def _claim(worker: JobQueue) -> DequeueResult | None:
    """A claim; one that lost its races too often counts as nothing got."""
    try:
        return await worker.dequeue()
    except BackendBusyError:
        return None


@clause(
    "JQ-FAIR-21",
    MUST,
    text="Racing claims never take a group over its cap, and the slots that are free afterwards can still be claimed.",
    why="Each claimer counts in its own snapshot, sees a free slot, and takes a different row of the group.",
    hints=[
        "Something that both claims must lock: a row or advisory lock per group, decided on in a later statement.",
        "A count in the claiming statement is not enough: its snapshot is older than the lock.",
    ],
    needs=_NEEDS,
    after=["JQ-FAIR-02", "JQ-RACE-01"],
    options=_OPTIONS,
    time_limit=_TIME,
)
async def racing_claims(ctx: Context[JobQueue]) -> None:
    each = await ctx.instances(3)
    # An adapter that puts its own calls in a line meets the others' only where each makes one.
    for workers in (each * 4, each) * 5:
        run_id = await _enqueue(ctx, 6)
        claims = await ctx.together(*(partial(_claim, worker) for worker in workers))
        raced = Counter(claimed.group_key for claimed in claims if claimed is not None)
        ctx.expect("most running jobs of one group", max(raced.values(), default=0)).is_at_most(_CAP)
        rest = await drain(ctx.adapter)
        total = raced + Counter(claimed.group_key for claimed in rest)
        ctx.expect("running jobs per group, every slot taken", dict(total)).equals(dict.fromkeys(_GROUPS, _CAP))
        await _finish(ctx, run_id)


async def _finish(ctx: Context[JobQueue], run_id: str) -> None:
    stages = [record.stage_id for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)]
    await ctx.adapter.delete_by_run_and_stages(run_id, stages)


@clause(
    "JQ-FAIR-22",
    MUST,
    text="While workers claim and complete, no group has more running jobs than its cap at any instant.",
    why="A cap that holds on average does not protect what it was set for: a licence, a connection limit, a tenant.",
    hints=["A slot is free when the row has left RUNNING, not before.", "Look at counters kept beside the rows."],
    needs=_NEEDS,
    after=["JQ-FAIR-21"],
    options=_OPTIONS,
    time_limit=_TIME,
)
async def at_every_instant(ctx: Context[JobQueue]) -> None:
    # More of them than slots: those that get nothing look at the rows.
    workers = await ctx.instances(3) * 3
    run_id = await _enqueue(ctx, 12)
    held: Counter[str | None] = Counter()
    most = 0
    done = 0

    async def work(worker: JobQueue) -> None:
        nonlocal most, done
        while done < len(_GROUPS) * 12:
            claimed = await _claim(worker)
            if claimed is None:
                await look()
                continue
            held[claimed.group_key] += 1
            most = max(most, *held.values())
            await worker.touch_job(claimed.job_id)
            # No longer held from here on, as far as can be told from outside.
            held[claimed.group_key] -= 1
            await worker.complete(claimed.job_id, claimed.fence)
            done += 1

    async def look() -> None:
        nonlocal most
        await checkpoint()
        listed = await ctx.adapter.get_jobs_by_workflow_run(run_id)
        running = Counter(record.group_key for record in listed if record.status is Status.RUNNING)
        most = max(most, *running.values(), 0)

    await ctx.together(*(partial(work, worker) for worker in workers))
    ctx.expect("most running jobs of one group", most).is_at_most(_CAP)
    ctx.expect("jobs completed", done).equals(36)
