"""P3 to P7: claims and acknowledgements beside the bare statements, and claims from a deep or flooded queue."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.postgres_support import (
    Claimer,
    Databases,
    compare,
    in_turns,
    pgbench,
    say,
    set_synchronous_commit,
    sql_of,
    statement_of,
)
from workflow_adapters import JobAckFence, ServedDefinition, SystemClock
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.claims import ANSWER
from workflow_adapters.postgres.job_queue import PostgresJobQueue

SECONDS = 2.0
FENCE = JobAckFence(started_at=SystemClock().now(), attempt=1)
SERVES = [ServedDefinition(workflow_id=f"w{number}" if number else "w", version="v") for number in range(4)]


def one_by_one() -> str:
    """A claim and its acknowledgement, as a script of pgbench."""
    claim = sql_of(statement_of(lambda queue: queue.dequeue())).replace("$1", "'me'").replace("$2", "1")
    acknowledge = sql_of(statement_of(lambda queue: queue.complete("id", FENCE)))
    # Where others were quicker the claim answers with what it saw, and there is nothing to acknowledge.
    started = "(timestamp 'epoch' + coalesce(nullif(:started, ''), '0')::bigint * interval '1 millisecond')::text"
    attempt = "coalesce(nullif(:attempt, ''), '0')"
    acknowledge = acknowledge.replace("$1", ":id").replace("$2::text", started).replace("$3", attempt)
    return f"{claim.replace('$3', '0')} LIMIT 1 \\gset\n{acknowledge};\n"


def by_hundreds() -> str:
    claim = sql_of(statement_of(lambda queue: queue.dequeue_many(100))).replace("$1", "'me'").replace("$2", "100")
    claims = claim.replace("$3", "0").replace(ANSWER, f", answered AS ({ANSWER})")
    arrays = "SELECT array_agg(id) AS ids, array_agg(started) AS starts, array_agg(attempt) AS attempts FROM answered"
    acknowledge = sql_of(statement_of(lambda queue: queue.complete_many([("id", FENCE)])))
    acknowledge = acknowledge.replace("$1", ":ids").replace("$2", ":starts").replace("$3", ":attempts")
    return f"{claims} {arrays} \\gset\n{acknowledge};\n"


async def through_the_adapters(dsn: str, tasks: int, batch: int) -> float:
    """Cycles a second of so many tasks; a cycle is a claim and its acknowledgement."""
    cycles = 0
    async with open_postgres(dsn, max_connections=tasks) as adapters:
        queue = adapters.job_queue
        # Each connection makes its plans first.
        await asyncio.gather(*(_some_cycles(queue, 10, batch) for _ in range(tasks)))
        until = time.perf_counter() + SECONDS

        async def work() -> int:
            done = 0
            while time.perf_counter() < until:
                await _some_cycles(queue, 1, batch)
                done += 1
            return done

        started = time.perf_counter()
        cycles = sum(await asyncio.gather(*(work() for _ in range(tasks))))
        return cycles / (time.perf_counter() - started)


async def _some_cycles(queue: PostgresJobQueue, number: int, batch: int) -> None:
    for _ in range(number):
        if batch == 1:
            job = await queue.dequeue()
            assert job is not None
            await queue.complete(job.job_id, job.fence)
        else:
            jobs = await queue.dequeue_many(batch)
            assert len(jobs) == batch
            await queue.complete_many([(job.job_id, job.fence) for job in jobs])


async def p3(databases: Databases, repetitions: int) -> None:
    await _cycles_beside_the_limit(databases, repetitions, "on", ">= 0.70")


async def p3_without_waiting(databases: Databases, repetitions: int) -> None:
    await _cycles_beside_the_limit(databases, repetitions, "off", ">= 0.55")


async def _cycles_beside_the_limit(databases: Databases, repetitions: int, committing: str, goal: str) -> None:
    for tasks in (1, 4, 16):
        dsn = await databases.filled({"number": 15_000 * repetitions})
        await set_synchronous_commit(dsn, committing)
        rates = await in_turns(
            {
                "limit": lambda dsn=dsn, tasks=tasks: pgbench(dsn, one_by_one(), tasks, SECONDS),
                "adapters": lambda dsn=dsn, tasks=tasks: through_the_adapters(dsn, tasks, 1),
            },
            repetitions,
        )
        what = f"claim 1, ack; {tasks} tasks, synchronous_commit {committing} / limit"
        say("P3", what, rates["adapters"] / rates["limit"], goal, _rates(rates))


async def p4(databases: Databases, repetitions: int) -> None:
    dsn = await databases.filled({"number": 100_000 * repetitions})
    rates = await in_turns(
        {
            "limit": lambda: pgbench(dsn, by_hundreds(), 1, SECONDS),
            "adapters": lambda: through_the_adapters(dsn, 1, 100),
        },
        repetitions,
    )
    say("P4", "claim 100 and acknowledge / limit", rates["adapters"] / rates["limit"], ">= 0.85", _rates(rates))


def _rates(rates: dict[str, float]) -> str:
    return ", ".join(f"{name} {rate:.0f}/s" for name, rate in rates.items())


async def p5(databases: Databases, repetitions: int) -> None:
    shallow = await databases.filled({"number": 1_000})
    deep = await databases.filled({"number": 1_000_000})
    what = "claim from 1,000,000 ready / from 1,000"
    await compare("P5", what, "<= 1.5, p99 <= 3", Claimer(shallow), Claimer(deep), repetitions)


async def p6(databases: Databases, repetitions: int) -> None:
    plain = await databases.filled({"number": 10_000})
    flood = {"number": 100_000, "prefix": "z", "priority": 9, "year": 2023, "due_at": "timestamp '2999-01-01'"}
    flooded = await databases.filled({"number": 10_000}, flood)
    for name, serves in (("any", None), ("served", SERVES)):
        what = f"100,000 not due at the head, {name} / none"
        await compare("P6", what, "<= 1.5", Claimer(plain, serves), Claimer(flooded, serves), repetitions)


async def p7(databases: Databases, repetitions: int) -> None:
    plain = await databases.filled({"number": 10_000})
    for what in ("workflow", "version"):
        flood: dict[str, Any] = {"number": 100_000, "prefix": "z", "priority": 9, "year": 2023, what: "'foreign'"}
        flooded = await databases.filled({"number": 10_000}, flood)
        line = f"100,000 of a foreign {what} at the head / none"
        await compare("P7", line, "<= 2", Claimer(plain, SERVES), Claimer(flooded, SERVES), repetitions)
