"""A process of sixteen tasks that work through the queue while the server ends their connections.

    python -m tests.postgres_queue.chaos_worker DSN CONNECTIONS

Each job's effect is a row, written in the transaction of its fenced completion. It ends when no job is left, and says
as JSON what it met.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections import Counter
from typing import TypedDict

import asyncpg

from workflow_adapters import BackendError
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import JobAckOutcome

TASKS = 16
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
LEFT = """
SELECT
    count(*) FILTER (WHERE status IN ('PENDING', 'RUNNING')),
    count(*) FILTER (WHERE status = 'PENDING' AND attempt = 0)
FROM job_queue
"""


class Met(TypedDict):
    """What a process met."""

    errors: dict[str, int]
    empty: int
    """How often a claim said that there is no job."""
    untouched: int
    """The most jobs that had never been claimed when one said so."""
    unhandled: list[str]
    """What reached the event loop's exception handler."""


class LeaseLost(Exception):  # noqa: N818 - it rolls back and is no fault
    pass


async def run(adapters: PostgresAdapters, job: DequeueResult) -> None:
    async with adapters.transaction() as tx:
        await tx.connection.execute("INSERT INTO effects (job_id) VALUES ($1)", job.job_id)
        if await tx.job_queue.complete(job.job_id, job.fence) is JobAckOutcome.SUPERSEDED:
            raise LeaseLost


async def left(adapters: PostgresAdapters) -> tuple[int, int]:
    """The jobs that are not finished, and of these the ones that were due all the time."""
    async with adapters.transaction() as tx:
        [row] = await tx.connection.fetch(LEFT)
    return row[0], row[1]


async def work(adapters: PostgresAdapters, met: Met, errors: Counter[str]) -> None:
    while True:
        try:
            job = await adapters.job_queue.dequeue()
            if job is not None:
                await run(adapters, job)
                continue
            met["empty"] += 1
            unfinished, untouched = await left(adapters)
            met["untouched"] = max(met["untouched"], untouched)
            if not unfinished:
                return
            await asyncio.sleep(0.05)
        except (BackendError, LeaseLost) as error:
            errors[type(error).__name__] += 1
            await asyncio.sleep(0.01)
        except DRIVER_ERRORS as error:
            # Of our own statements, which go past the adapters.
            errors[f"asyncpg.{type(error).__name__}"] += 1
            await asyncio.sleep(0.01)


async def main(dsn: str, connections: int) -> Met:
    errors: Counter[str] = Counter()
    met = Met(errors=errors, empty=0, untouched=0, unhandled=[])
    asyncio.get_running_loop().set_exception_handler(lambda _, context: met["unhandled"].append(str(context)))
    async with open_postgres(dsn, max_connections=connections) as adapters, asyncio.TaskGroup() as tasks:
        for _ in range(TASKS):
            tasks.create_task(work(adapters, met, errors))
    # An exception that nobody retrieved is told of when its task or future goes.
    gc.collect()
    await asyncio.sleep(0)
    return met


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2])))))  # noqa: T201 - the process's answer
