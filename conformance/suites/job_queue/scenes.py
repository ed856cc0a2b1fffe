"""What clauses of the job queue set up and look at again and again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from anyio.lowlevel import checkpoint

from conformance.builders import job
from conformance.context import Context
from workflow_adapters.errors import BackendBusyError
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.job_queue import DequeueResult, JobRecord
from workflow_adapters.records.status import Status

MS: Final = timedelta(milliseconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
A_FLOOD: Final = 300
"""So many jobs at the head are beyond what a claim may be expected to look through one by one."""
EVERY_LEASE: Final = timedelta(minutes=-1)
"""A span that makes every lease old, however little time has passed."""


async def enqueue_one(ctx: Context[JobQueue], **fields: Any) -> str:
    """Enqueue one job in a run of its own and return the run's id."""
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel([job(run_id, **fields)])
    return run_id


async def enqueue_stages(ctx: Context[JobQueue], run_id: str, count: int, **fields: Any) -> list[str]:
    """Enqueue ``stage-0``, ``stage-1``, … of the run in one call and return the jobs' ids."""
    return await ctx.adapter.enqueue_parallel([job(run_id, f"stage-{number}", **fields) for number in range(count)])


async def claim(ctx: Context[JobQueue], adapter: JobQueue | None = None, serves: Serves = None) -> DequeueResult:
    """Claim the next job; there must be one."""
    return ctx.expect("the claim", await (adapter or ctx.adapter).dequeue(serves)).is_not_none()


async def running_job(ctx: Context[JobQueue], **fields: Any) -> DequeueResult:
    """Enqueue one job in a run of its own and claim it."""
    await enqueue_one(ctx, **fields)
    return await claim(ctx)


async def claim_again(ctx: Context[JobQueue], adapter: JobQueue | None = None) -> DequeueResult:
    """Give every lease back and claim the next job: its earlier claim is lost."""
    await (adapter or ctx.adapter).release_stale_jobs(EVERY_LEASE)
    return await claim(ctx, adapter)


async def job_of(ctx: Context[JobQueue], run_id: str, stage_id: str = "stage") -> JobRecord:
    """The stored job of the pair; there must be exactly one."""
    stored = [record for record in await ctx.adapter.get_jobs_by_workflow_run(run_id) if record.stage_id == stage_id]
    return ctx.expect(f"stored jobs of the pair with {stage_id}", stored).has_length(1)[0]


async def statuses(ctx: Context[JobQueue], run_id: str) -> dict[str, Status]:
    """The status of each stage's job."""
    return {record.stage_id: record.status for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)}


async def drain(adapter: JobQueue, serves: Serves = None) -> list[DequeueResult]:
    """Claim until the queue answers None."""
    claims: list[DequeueResult] = []
    while (claimed := await adapter.dequeue(serves)) is not None:
        claims.append(claimed)
    return claims


async def drain_patiently(adapter: JobQueue) -> list[DequeueResult]:
    """Claim until the queue answers None; a race that was lost too often may be tried again."""
    claims: list[DequeueResult] = []
    while True:
        try:
            claims += await drain(adapter)
        except BackendBusyError:
            await checkpoint()
            continue
        return claims


def stage_ids(claims: Sequence[DequeueResult]) -> list[str]:
    return [claimed.stage_id for claimed in claims]
