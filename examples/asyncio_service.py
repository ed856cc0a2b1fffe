"""A service without a framework: ``python -m examples.asyncio_service`` works through a few jobs and stops in order."""

from __future__ import annotations

import anyio

from workflow_adapters import EnqueueJobInput, JobQueue, JobRecord, OutboxRecord, Status, open_adapters
from workflow_adapters.runtime import JobContext, PermanentJobError, run_workflow_service

JOBS = 20


async def handle(ctx: JobContext) -> None:
    """A job that fails once, one that fails for good, and others that just work."""
    if ctx.job.stage_id == "stage-3" and ctx.job.attempt == 1:
        raise ValueError("the first attempt of this one always fails")
    if ctx.job.stage_id == "stage-4":
        raise PermanentJobError("this one can not work")
    await anyio.sleep(0.01)


async def publish(event: OutboxRecord) -> None:
    print(f"event {event.event_type}")


async def ended(queue: JobQueue) -> list[JobRecord]:
    """The jobs, once the last of them has ended."""
    while True:
        jobs = await queue.get_jobs_by_workflow_run("run")
        if all(job.completed_at for job in jobs):
            return jobs
        await anyio.sleep(0.05)


async def main() -> None:
    async with run_workflow_service(lambda: open_adapters("sqlite://"), handle, sink=publish) as service:
        queue = service.adapters.job_queue
        jobs = [
            EnqueueJobInput(workflow_run_id="run", workflow_id="example", stage_id=f"stage-{n}") for n in range(JOBS)
        ]
        await queue.enqueue_parallel(jobs)
        with anyio.fail_after(30):
            done = await ended(queue)
    print(f"{sum(job.status is Status.COMPLETED for job in done)} of {JOBS} jobs completed")
    for job in done:
        if job.status is Status.FAILED:
            print(f"{job.stage_id} failed: {job.last_error}")


if __name__ == "__main__":
    anyio.run(main)
