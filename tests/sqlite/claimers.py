"""What the processes of the tests do, in a module of its own: a spawned process imports it."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta

from workflow_adapters import EnqueueJobInput, open_sqlite

LEASE = timedelta(seconds=1)


def job(n: int) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id=f"run-{n % 7}", workflow_id="w", stage_id=f"{n:05}", payload={"n": n})


async def claim_all(path: str, tasks: int) -> None:
    """Claim and complete until nothing is left, and say each claim aloud: ``<job id> <attempt> <acknowledgement>``."""
    async with open_sqlite(path, worker_id=f"process-{os.getpid()}") as adapters:

        async def work() -> None:
            while (claimed := await adapters.job_queue.dequeue()) is not None:
                said = await adapters.job_queue.complete(claimed.job_id, claimed.fence)
                print(claimed.job_id, claimed.attempt, said)  # noqa: T201 - the parent reads it

        await asyncio.gather(*(work() for _ in range(tasks)))


async def claim_and_hang(path: str, count: int) -> None:
    """Claim `count` jobs, leave one more claim's transaction open, say so, and do nothing more."""
    async with open_sqlite(path, worker_id="hanging") as adapters:
        for _ in range(count):
            await adapters.job_queue.dequeue()
        async with adapters.transaction() as tx:
            await tx.job_queue.dequeue()
            print("hanging", flush=True)  # noqa: T201 - the parent reads it
            await asyncio.Event().wait()


if __name__ == "__main__":
    does = {"claim_all": claim_all, "claim_and_hang": claim_and_hang}[sys.argv[1]]
    asyncio.run(does(sys.argv[2], int(sys.argv[3])))
