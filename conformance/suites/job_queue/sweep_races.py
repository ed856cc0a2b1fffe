"""Sweeps and cancellations that race with acknowledgements and claims."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import EVERY_LEASE, drain, drain_patiently, enqueue_stages, statuses
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import JobAckOutcome, Status

_TIME: Final = timedelta(seconds=15)
_WORKERS: Final = 3
_TOLD: Final = {JobAckOutcome.ACKNOWLEDGED: Status.COMPLETED, JobAckOutcome.SUPERSEDED: Status.PENDING}


@clause(
    "JQ-RACE-04",
    MUST,
    text="A sweep never undoes an acknowledgement: a job is either completed or released, as the worker was told.",
    why="A job completed between the sweep's look and its write would run again.",
    hints=["One conditional UPDATE; no selecting of ids first."],
    after=["JQ-STALE-01", "JQ-ACK-12"],
    time_limit=_TIME,
)
async def sweep_against_acknowledgement(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    for _ in range(8):
        run_id = await ctx.new_run()
        await enqueue_stages(ctx, run_id, 24)
        claims = await drain(ctx.adapter)
        outcomes: dict[str, JobAckOutcome] = {}
        acknowledging = [partial(_complete, ctx.adapter, claimed, outcomes) for claimed in claims]
        await ctx.together(*acknowledging[:12], partial(other.release_stale_jobs, EVERY_LEASE), *acknowledging[12:])
        found = await statuses(ctx, run_id)
        belied = {
            stage: f"{told}, {found[stage]}" for stage, told in outcomes.items() if found[stage] is not _TOLD[told]
        }
        ctx.expect("what workers were told that the status belies", belied).is_empty()
        await ctx.adapter.cancel_by_run(run_id)


async def _complete(queue: JobQueue, claimed: DequeueResult, outcomes: dict[str, JobAckOutcome]) -> None:
    outcomes[claimed.stage_id] = await queue.complete(claimed.job_id, claimed.fence)


@clause(
    "JQ-RACE-05",
    MUST,
    text="Several sweeps at once count each released job once.",
    why="Alarms are raised on the number of lost leases.",
    hints=["The count is that of rows changed by this very statement."],
    after=["JQ-STALE-01"],
    time_limit=_TIME,
)
async def sweeps(ctx: Context[JobQueue]) -> None:
    workers = await ctx.instances(_WORKERS) * 2
    await enqueue_stages(ctx, await ctx.new_run(), 20)
    await drain(ctx.adapter)
    counts = await ctx.together(*(partial(worker.release_stale_jobs, EVERY_LEASE) for worker in workers))
    left = await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    ctx.expect("jobs released, over all sweeps", sum(counts) + left).equals(20)


@clause(
    "JQ-RACE-06",
    MUST,
    text="A cancellation that races with claims leaves each job either cancelled or with the worker that got it.",
    why="A worker would run a job that reads as cancelled, and its acknowledgement would be refused.",
    hints=["The cancellation's UPDATE looks at the status itself, not at a list made before."],
    after=["JQ-CANCEL-01", "JQ-RACE-01"],
    time_limit=_TIME,
)
async def cancellation_against_claims(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    run_id = await ctx.new_run()
    await enqueue_stages(ctx, run_id, 24)
    taken: list[DequeueResult] = []
    counted: list[int] = []

    async def claims() -> None:
        taken.extend(await drain_patiently(ctx.adapter))

    async def cancellation() -> None:
        counted.append(await other.cancel_by_run(run_id))

    await ctx.together(claims, cancellation)
    found = await statuses(ctx, run_id)
    running = {stage for stage, status in found.items() if status is Status.RUNNING}
    cancelled = {stage for stage, status in found.items() if status is Status.CANCELLED}
    ctx.expect("stages running", running).equals({claimed.stage_id for claimed in taken})
    ctx.expect("jobs cancelled, as counted", counted).equals([len(cancelled)])
    ctx.expect("jobs claimed and cancelled", len(running) + len(cancelled)).equals(24)


@clause(
    "JQ-RACE-10",
    MUST,
    text="Calls that enqueue, delete and cancel jobs of one run at once, in any order of its stages, never deadlock.",
    why="A rerun and a cancellation of one run meet; a deadlock costs one of them its transaction.",
    hints=["All three lock their rows in one order: by stage id, byte by byte."],
    after=["JQ-RACE-07", "JQ-DELETE-01", "JQ-CANCEL-01"],
    time_limit=_TIME,
)
async def one_lock_order(ctx: Context[JobQueue]) -> None:
    first, second, third = await ctx.instances(3)
    run_id = await ctx.new_run()
    names = [f"stage-{number:02}" for number in range(30)]
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        partial(first.enqueue_parallel, [job(run_id, name) for name in names]),
        partial(second.delete_by_run_and_stages, run_id, names[::-1]),
        partial(third.enqueue_parallel, [job(run_id, name) for name in names[::-1]]),
        partial(second.cancel_by_run, run_id),
    )
    for turn in range(len(calls)):
        outcomes = await ctx.settled(*calls[turn:], *calls[:turn])
        ctx.expect("errors", [outcome for outcome in outcomes if isinstance(outcome, Exception)]).is_empty()
        stored = await ctx.adapter.get_jobs_by_workflow_run(run_id)
        ctx.expect("stages with two jobs", len(stored) - len({one.stage_id for one in stored})).equals(0)
