"""A process of sixteen tasks that work through the queue while the server ends their connections.

    python -m tests.postgres_queue.chaos DSN

Each job's effect is a row, written in the transaction of its fenced completion. It ends when no job is left, and says
which errors it met how often.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

import asyncpg

from workflow_adapters import BackendError, Status
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import JobAckOutcome

TASKS = 16
CONNECTIONS = 5


class LeaseLost(Exception):  # noqa: N818 - it rolls back and is no fault
    pass


async def run(adapters: PostgresAdapters, job: DequeueResult) -> None:
    async with adapters.transaction() as tx:
        await tx.connection.execute("INSERT INTO effects (job_id) VALUES ($1)", job.job_id)
        if await tx.job_queue.complete(job.job_id, job.fence) is JobAckOutcome.SUPERSEDED:
            raise LeaseLost


async def work(adapters: PostgresAdapters, met: Counter[str]) -> None:
    while True:
        try:
            job = await adapters.job_queue.dequeue()
            if job is not None:
                await run(adapters, job)
            else:
                met["empty"] += 1
                stats = await adapters.operations.queue_stats()
                if stats.by_status[Status.PENDING] + stats.by_status[Status.RUNNING] == 0:
                    return
                await asyncio.sleep(0.05)
        except (BackendError, LeaseLost) as error:
            met[type(error).__name__] += 1
            await asyncio.sleep(0.01)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            # Of the effect's own statement, which goes past the adapters.
            met[f"asyncpg.{type(error).__name__}"] += 1
            await asyncio.sleep(0.01)


async def main(dsn: str) -> None:
    met: Counter[str] = Counter()
    unhandled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(str(context)))
    async with open_postgres(dsn, max_connections=CONNECTIONS) as adapters:
        await asyncio.gather(*(work(adapters, met) for _ in range(TASKS)))
    print(json.dumps({"met": met, "unhandled": unhandled}))  # noqa: T201 - the process's answer


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
