"""P10: how soon an idle worker has a new job, and what notifications cost those who write."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from datetime import timedelta

from benchmarks.postgres_support import Databases, in_turns, percentile, say
from benchmarks.postgres_writes import jobs
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.postgres.job_channel import ListenerState

WAKE_UPS = 60
WRITERS = 32
SECONDS = 3.0
LONG = timedelta(minutes=1)


async def wake_ups(dsn: str) -> list[float]:
    """Milliseconds from the end of an enqueue to the end of the claim by another bundle that was waiting."""
    took: list[float] = []
    # Looks at the queue would hide a notification that did not come.
    async with open_postgres(dsn, poll_interval=LONG) as worker, open_postgres(dsn) as writer:
        await _until_listening(worker)
        for _ in range(WAKE_UPS):
            claiming = asyncio.create_task(_claim_when_woken(worker))
            # Long enough for the worker to be idle, and for the writer's last notification to be out.
            await asyncio.sleep(random.uniform(0.08, 0.16))
            await writer.job_queue.enqueue_parallel(jobs(1))
            enqueued = time.perf_counter()
            took.append((await claiming - enqueued) * 1000)
    return took


async def _until_listening(worker: PostgresAdapters) -> None:
    while worker.listener_state is not ListenerState.LISTENING:
        await worker.job_queue.wait_for_jobs(timedelta(milliseconds=50))


async def _claim_when_woken(worker: PostgresAdapters) -> float:
    while (job := await worker.job_queue.dequeue()) is None:
        await worker.job_queue.wait_for_jobs(LONG)
    claimed = time.perf_counter()
    await worker.job_queue.complete(job.job_id, job.fence)
    return claimed


async def write_rate(dsn: str, *, notifying: bool) -> float:
    """Jobs a second that 32 tasks enqueue one by one, while another bundle listens."""
    async with (
        open_postgres(dsn, wake_ups=notifying, max_connections=WRITERS) as adapters,
        open_postgres(dsn, poll_interval=LONG) as worker,
    ):
        await _until_listening(worker)
        await asyncio.gather(*(adapters.job_queue.enqueue_parallel(jobs(1)) for _ in range(WRITERS)))
        until = time.perf_counter() + SECONDS

        async def write() -> int:
            written = 0
            while time.perf_counter() < until:
                await adapters.job_queue.enqueue_parallel(jobs(1))
                written += 1
            return written

        return sum(await asyncio.gather(*(write() for _ in range(WRITERS)))) / SECONDS


async def p10(databases: Databases, repetitions: int) -> None:
    dsn = await databases.filled()
    runs = [await wake_ups(dsn) for _ in range(repetitions)]
    p50, p99 = (statistics.median(percentile(run, share) for run in runs) for share in (0.5, 0.99))
    say("P10", "an idle worker has a new job, p50 in ms", p50, "<= 15 ms", f"p99 {p99:.1f} ms")
    on, off = await databases.filled(), await databases.filled()
    rates = await in_turns(
        {"on": lambda: write_rate(on, notifying=True), "off": lambda: write_rate(off, notifying=False)}, repetitions
    )
    detail = f"{rates['on']:.0f} / {rates['off']:.0f} jobs/s"
    say("P10", f"{WRITERS} writers, notifications on / off", rates["on"] / rates["off"], ">= 0.9", detail)
