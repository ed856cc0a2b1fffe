"""A bundle, jobs and a worker to try things on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio

from workflow_adapters import Adapters, EnqueueJobInput, JobRecord, Status
from workflow_adapters.runtime import Event, Handler, Worker

QUICK: dict[str, Any] = {
    "lease": timedelta(seconds=1),
    "poll_interval": timedelta(milliseconds=50),
    "drain": timedelta(seconds=5),
    "grace": timedelta(seconds=0.3),
}
PATIENCE = 30


async def enqueue(adapters: Any, *stages: str, **fields: Any) -> list[str]:
    return await adapters.job_queue.enqueue_parallel(
        [EnqueueJobInput(workflow_run_id="r", workflow_id="w", stage_id=stage, **fields) for stage in stages]
    )


async def job(adapters: Adapters, stage: str) -> JobRecord:
    jobs = await adapters.job_queue.get_jobs_by_workflow_run("r")
    return next(job for job in jobs if job.stage_id == stage)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that has no event to wait for."""
    with anyio.fail_after(PATIENCE):
        while True:
            if await condition():
                return
            await anyio.sleep(0.01)


async def until_status(adapters: Adapters, stage: str, status: Status) -> JobRecord:
    async def reached() -> bool:
        return (await job(adapters, stage)).status is status

    await until(reached)
    return await job(adapters, stage)


async def until_noted(worker: Worker, event: Event) -> None:
    async def noted() -> bool:
        return worker.observation.counts[event] > 0

    await until(noted)


@asynccontextmanager
async def working(adapters: Any, handler: Handler, **settings: Any) -> AsyncGenerator[Worker]:
    """A running worker, stopped in an orderly way at the end of the block."""
    worker = Worker(adapters.job_queue, handler, adapters=adapters, **{**QUICK, **settings})
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            await tasks.start(worker.run)
            try:
                yield worker
            finally:
                worker.stop()


class UnreadableError(Exception):
    """An error of a host whose message can not be had."""

    def __str__(self) -> str:
        raise RuntimeError("no message")

    __repr__ = __str__
