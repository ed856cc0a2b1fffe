"""P9: the rate of claim, acknowledgement and enqueueing while another session holds an old snapshot."""

from __future__ import annotations

import asyncio
import itertools
import time

import asyncpg

from benchmarks.postgres_support import Databases, in_turns, say
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
    await _behind_a_snapshot(databases, repetitions, "any", ">= 0.5")


async def p9_served(databases: Databases, repetitions: int) -> None:
    await _behind_a_snapshot(databases, repetitions, "served", ">= 0.5", serves=SERVES)


async def p9_under_a_cap(databases: Databases, repetitions: int) -> None:
    fairness = JobQueueFairness(max_concurrent_per_group=20)
    await _behind_a_snapshot(databases, repetitions, "under a cap", "", fairness=fairness)


async def _behind_a_snapshot(
    databases: Databases,
    repetitions: int,
    name: str,
    goal: str,
    *,
    serves: list[ServedDefinition] | None = None,
    fairness: JobQueueFairness | None = None,
) -> None:
    """Two databases of one server, of which one has the snapshot: it holds back the vacuum of its own only."""
    held, free = [await databases.filled({"number": 2_000, "group": "'g' || n % 100"}) for _ in range(2)]
    names = itertools.count()
    async with (
        open_postgres(held, fairness=fairness, max_connections=TASKS) as behind,
        open_postgres(free, fairness=fairness, max_connections=TASKS) as without,
    ):
        for adapters in (behind, without):
            await cycles(adapters, CYCLES, names, serves)
        holder = await asyncpg.connect(held)
        async with holder.transaction(isolation="repeatable_read"):
            await holder.fetch("SELECT FROM job_queue LIMIT 1")
            await cycles(behind, BEHIND, names, serves)
            rates = await in_turns(
                {
                    "held": lambda: cycles(behind, CYCLES, names, serves),
                    "free": lambda: cycles(without, CYCLES, names, serves),
                },
                repetitions,
            )
        await holder.close()
    what = f"{BEHIND:,} cycles behind a snapshot, {name} / without"
    say("P9", what, rates["held"] / rates["free"], goal, f"{rates['held']:.0f} / {rates['free']:.0f}/s")
