"""Heartbeats beside a transaction that holds one of the jobs."""

from __future__ import annotations

import asyncio
from datetime import datetime

import asyncpg
import pytest

from tests.postgres_queue.support import jobs
from workflow_adapters import JobAckOutcome
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.records.job_queue import DequeueResult

pytestmark = pytest.mark.asyncio

HELD, LOST = JobAckOutcome.ACKNOWLEDGED, JobAckOutcome.SUPERSEDED


async def claimed(adapters: PostgresAdapters, raw: asyncpg.Connection) -> list[DequeueResult]:
    """Three claims, whose leases were last refreshed long ago."""
    await adapters.job_queue.enqueue_parallel(jobs(3))
    held = await adapters.job_queue.dequeue_many(3)
    await raw.execute("""UPDATE job_queue SET "lockedAt" = '2020-01-01'""")
    return held


async def beat(adapters: PostgresAdapters, held: list[DequeueResult]) -> list[JobAckOutcome]:
    async with asyncio.timeout(5):
        return await adapters.job_queue.heartbeat([(job.job_id, job.fence) for job in held])


async def refreshed(raw: asyncpg.Connection, held: list[DequeueResult]) -> list[bool]:
    locked: dict[str, datetime] = {row[0]: row[1] for row in await raw.fetch('SELECT id, "lockedAt" FROM job_queue')}
    return [locked[job.job_id].year > 2020 for job in held]


@pytest.mark.parametrize("commits", [True, False])
async def test_the_other_leases_do_not_wait_for_a_job_that_is_locked(
    dsn: str, raw: asyncpg.Connection, commits: bool
) -> None:
    class UndoneError(Exception):
        pass

    async with open_postgres(dsn) as adapters:
        held = await claimed(adapters, raw)
        try:
            async with adapters.transaction() as tx:
                await tx.job_queue.complete(held[1].job_id, held[1].fence)
                # The transaction may come to nothing, and the claim holds until it does not.
                assert await beat(adapters, held) == [HELD, HELD, HELD]
                assert await refreshed(raw, held) == [True, False, True]
                if not commits:
                    raise UndoneError
        except UndoneError:
            pass
        assert await beat(adapters, held) == [HELD, LOST if commits else HELD, HELD]
        assert await refreshed(raw, held) == [True, not commits, True]


async def test_a_claim_that_was_lost_is_told_beside_one_that_is_locked(dsn: str, raw: asyncpg.Connection) -> None:
    async with open_postgres(dsn) as adapters:
        held = await claimed(adapters, raw)
        await adapters.job_queue.complete(held[0].job_id, held[0].fence)
        async with adapters.transaction() as tx:
            await tx.job_queue.complete(held[1].job_id, held[1].fence)
            assert await beat(adapters, held) == [LOST, HELD, HELD]
            # In the transaction that holds the lock it is no obstacle.
            assert await tx.job_queue.heartbeat([(job.job_id, job.fence) for job in held]) == [LOST, LOST, HELD]
