"""P9: the rate of claim, acknowledgement and enqueueing while another session holds an old snapshot."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time

import asyncpg

from benchmarks.postgres_support import Databases, say
from workflow_adapters import EnqueueJobInput, JobQueueFairness, ServedDefinition
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres

TASKS = 4
CYCLES = 2_000
BEHIND = 40_000
SERVES = [ServedDefinition(workflow_id="w", version="v")]


async def cycles(
    adapters: PostgresAdapters, number: int, names: itertools.count[int], serves: list[ServedDefinition] | None
) -> float:
    """Cycles a second."""
    queue = adapters.job_queue

    async def work() -> None:
        for _ in range(number // TASKS):
            job = await queue.dequeue(serves)
            assert job is not None
            await queue.complete(job.job_id, job.fence)
            run = next(names)
            await queue.enqueue_parallel(
                [EnqueueJobInput(workflow_run_id=f"n{run}", workflow_id="w", stage_id="s", group_key=f"g{run % 100}")]
            )

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(TASKS)))
    return number / (time.perf_counter() - started)


async def p9(databases: Databases, repetitions: int) -> None:
    fair = JobQueueFairness(max_concurrent_per_group=20)
    for name, goal, serves, fairness in (
        ("any", ">= 0.5", None, None),
        ("served", ">= 0.5", SERVES, None),
        ("under a cap", "", None, fair),
    ):
        dsn = await databases.filled({"number": 2_000, "group": "'g' || n % 100"})
        names = itertools.count()
        async with open_postgres(dsn, fairness=fairness, max_connections=TASKS) as adapters:
            await cycles(adapters, CYCLES, names, serves)
            without = statistics.median([await cycles(adapters, CYCLES, names, serves) for _ in range(repetitions)])
            holder = await asyncpg.connect(dsn)
            async with holder.transaction(isolation="repeatable_read"):
                await holder.fetch("SELECT FROM job_queue LIMIT 1")
                await cycles(adapters, BEHIND, names, serves)
                held = statistics.median([await cycles(adapters, CYCLES, names, serves) for _ in range(repetitions)])
            await holder.close()
        say(
            "P9",
            f"{BEHIND:,} cycles behind a snapshot, {name} / before",
            held / without,
            goal,
            f"{held:.0f} / {without:.0f}/s",
        )
