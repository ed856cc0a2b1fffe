"""A process that claims under a cap and does everything to its jobs that can be done, for some seconds.

On a busy machine it goes on until it has claimed enough to have shown anything.

    python -m tests.postgres_queue.hammer DSN SECONDS CAP GROUP_BY COSTLY_MS

A look that takes longer than COSTLY_MS is a costly one: with 0 all are, as on a server that has much to do. It says at
the end how many jobs it claimed, and which errors it met how often.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

from tests.postgres_queue.support import a_job
from workflow_adapters import EnqueueJobInput, JobQueueFairness, RetryBackoff
from workflow_adapters.postgres import lookahead
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.job_queue import PostgresJobQueue
from workflow_adapters.records.job_queue import DequeueResult

TASKS = 6
GROUPS = 3
ENOUGH = 40
LONGEST_SECONDS = 30.0
AT_ONCE = RetryBackoff(base=timedelta(0))


def new_jobs(priority: int) -> list[EnqueueJobInput]:
    groups = [random.randrange(GROUPS) for _ in range(10)]
    return [
        a_job(
            f"run-{random.randrange(200)}",
            f"s{number}",
            priority=priority,
            group_key=f"g{group}" if group else None,
            payload={"tenant": {"id": f"g{group}" if group else ""}},
        )
        for number, group in enumerate(groups)
    ]


async def end(queue: PostgresJobQueue, job: DequeueResult) -> None:
    await asyncio.sleep(random.random() / 50)  # somebody's sweep may be quicker
    past = datetime.now(UTC) - timedelta(minutes=1)
    match random.randrange(12):
        case 0:
            await queue.fail(job.job_id, "again", True, job.fence)
        case 1:
            await queue.fail(job.job_id, "never", False, job.fence)
        case 2:
            await queue.defer(job.job_id, past, "later", job.fence)
        case 3:
            await queue.suspend(job.job_id, past, job.fence)
        case 4:
            await queue.complete_many([(job.job_id, job.fence)])
        case 5:
            await queue.delete_by_run_and_stages(job.workflow_run_id, [job.stage_id])
        case _:
            await queue.complete(job.job_id, job.fence)


async def main(dsn: str, seconds: float, cap: int, group_by: str) -> None:
    counts: Counter[str] = Counter()
    began = time.monotonic()
    fairness = JobQueueFairness(max_concurrent_per_group=cap, group_by=group_by)
    async with open_postgres(dsn, fairness=fairness, backoff=AT_ONCE, max_connections=TASKS + 2) as adapters:
        queue = adapters.job_queue

        def goes_on() -> bool:
            passed = time.monotonic() - began
            return passed < seconds or (counts["claimed"] < ENOUGH and passed < LONGEST_SECONDS)

        async def claim() -> None:
            while goes_on():
                try:
                    for job in await queue.dequeue_many(random.choice([1, 1, 1, 4])):
                        counts["claimed"] += 1
                        await end(queue, job)
                except Exception as error:  # noqa: BLE001 - they are what is counted
                    counts[type(error).__name__] += 1

        async def write() -> None:
            priority = 0
            while goes_on():
                priority += 1
                await queue.enqueue_parallel(new_jobs(priority))
                await queue.release_stale_jobs(timedelta(milliseconds=20))
                await asyncio.sleep(0.005)

        await asyncio.gather(write(), *(claim() for _ in range(TASKS)))
    print(json.dumps(counts))  # noqa: T201 - the process's answer


if __name__ == "__main__":
    lookahead._COSTLY_MS = float(sys.argv[5])
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
