"""P8: claims under a cap beside plain ones, and that the cap holds meanwhile."""

from __future__ import annotations

import asyncio
import time

import asyncpg

from benchmarks.postgres_support import Claimer, Databases, compare, in_turns, say
from workflow_adapters import JobQueueFairness
from workflow_adapters.postgres.bundle import open_postgres

CAP = 5
FAIRNESS = JobQueueFairness(max_concurrent_per_group=CAP)
SECONDS = 2.0
MOST = "SELECT coalesce(max(n), 0) FROM (SELECT count(*) n FROM job_queue WHERE status = 'RUNNING' GROUP BY wa_group) g"


async def rate(dsn: str, fairness: JobQueueFairness | None) -> float:
    """Claims and acknowledgements a second of eight tasks."""
    connection = await asyncpg.connect(dsn)
    look = await connection.prepare(MOST)
    most = 0
    async with open_postgres(dsn, fairness=fairness, max_connections=8) as adapters:
        queue = adapters.job_queue
        until = time.perf_counter() + SECONDS

        async def work() -> int:
            done = 0
            while time.perf_counter() < until:
                job = await queue.dequeue()
                if job is not None:
                    await queue.complete(job.job_id, job.fence)
                    done += 1
            return done

        async def watch() -> None:
            nonlocal most
            while time.perf_counter() < until:
                most = max(most, await look.fetchval())
                await asyncio.sleep(0.02)

        *done, _ = await asyncio.gather(*(work() for _ in range(8)), watch())
    await connection.close()
    assert fairness is None or most <= CAP
    return sum(number for number in done if number) / SECONDS


async def p8(databases: Databases, repetitions: int) -> None:
    hundred = {"number": 50_000, "group": "'g' || n % 100"}
    flood = {"number": 100_000, "prefix": "z", "priority": 9, "year": 2023, "group": "'full'"}
    running = {"number": CAP, "prefix": "r", "status": "RUNNING", "group": "'full'"}
    full_groups = {"number": 90 * CAP, "prefix": "r", "status": "RUNNING", "group": "'g' || n % 90"}
    states = {
        "50,000 in 100 groups": ("<= 1.5", (hundred,)),
        "50,000 in 100 groups, 90 of them full": ("", (hundred, full_groups)),
        "50,000 in 10,000 groups": ("<= 2", ({"number": 50_000, "group": "'g' || n % 10000"},)),
        "100,000 of a full group at the head": ("<= 2", (hundred, flood, running)),
    }
    # With a full group at the head a claim without a cap would take of that; it is measured without the flood.
    plain = Claimer(await databases.filled(hundred))
    for name, (goal, rows) in states.items():
        fair = Claimer(await databases.filled(*rows), fairness=FAIRNESS)
        await compare("P8", f"{name} / without a cap", goal, plain, fair, repetitions)
    capped = await databases.filled({"number": 15_000 * repetitions, "group": "'g' || n % 100"})
    unfair = await databases.filled({"number": 15_000 * repetitions, "group": "'g' || n % 100"})
    rates = await in_turns({"fair": lambda: rate(capped, FAIRNESS), "unfair": lambda: rate(unfair, None)}, repetitions)
    detail = f"{rates['fair']:.0f} / {rates['unfair']:.0f} jobs/s"
    say("P8", "8 claimers, the cap held / without a cap", rates["fair"] / rates["unfair"], ">= 0.6", detail)
