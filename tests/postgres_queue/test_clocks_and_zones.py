"""Lease stamps in any session, whatever its zone, its default isolation, and the host's clock."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import asyncpg
import pytest
import pytest_asyncio

from tests.postgres.support import script
from tests.postgres_queue.support import a_job, jobs, queue_of
from workflow_adapters import JobAckOutcome, JobQueueFairness, ManualClock, RetryBackoff, Status
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres

pytestmark = pytest.mark.asyncio

SETTINGS = {
    "Kolkata": "SET timezone = 'Asia/Kolkata'",
    "New York": "SET timezone = 'America/New_York'",
    "repeatable read": "SET default_transaction_isolation = 'repeatable read'",
    "serializable": "SET default_transaction_isolation = 'serializable'",
    "German dates": "SET datestyle = 'German, DMY'",
}
HOUR = timedelta(hours=1)
SLACK = timedelta(seconds=30)
FAR = timedelta(days=365 * 7000)
LATEST = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)


@pytest_asyncio.fixture(params=SETTINGS)
async def set_dsn(request: pytest.FixtureRequest, dsn: str) -> str:
    """A database with one of the settings."""
    await script(dsn, f'ALTER DATABASE "{urlsplit(dsn).path[1:]}" {SETTINGS[request.param]}')
    return dsn


def opened(dsn: str) -> AbstractAsyncContextManager[PostgresAdapters]:
    """With a host's clock that is off, and is asked for nothing that has to do with jobs."""
    return open_postgres(dsn, clock=ManualClock(), fairness=JobQueueFairness(max_concurrent_per_group=50))


async def test_leases_are_stamped_in_utc_by_the_database(set_dsn: str) -> None:
    async with opened(set_dsn) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel([a_job()])
        claimed = await queue.dequeue()
        assert claimed is not None
        assert abs(claimed.started_at - datetime.now(UTC)) < SLACK
        (stored,) = await queue.get_jobs_by_workflow_run("r")
        assert stored.started_at == stored.locked_at == claimed.started_at
        assert abs(stored.created_at - datetime.now(UTC)) < SLACK
        assert await queue.release_stale_jobs(timedelta(minutes=5)) == 0
        assert await queue.expire_runaway_jobs(HOUR) == 0
        assert await queue.heartbeat([(claimed.job_id, claimed.fence)]) == [JobAckOutcome.ACKNOWLEDGED]
        assert await queue.complete_many([(claimed.job_id, claimed.fence)]) == [JobAckOutcome.ACKNOWLEDGED]
        (stored,) = await queue.get_jobs_by_workflow_run("r")
        assert stored.completed_at is not None
        assert abs(stored.completed_at - datetime.now(UTC)) < SLACK


async def test_dates_are_compared_in_utc(set_dsn: str) -> None:
    async with opened(set_dsn) as adapters:
        queue = adapters.job_queue
        now = datetime.now(UTC)
        await queue.enqueue_parallel(
            [a_job(stage="past", scheduled_for=now - HOUR), a_job(stage="future", scheduled_for=now + HOUR)]
        )
        claimed = await queue.dequeue()
        assert claimed is not None
        assert claimed.stage_id == "past"
        assert await queue.dequeue() is None
        due_in = await queue._next_due()
        assert due_in is not None
        assert abs(due_in - 3600) < 30
        await queue.fail(claimed.job_id, "why", True, claimed.fence)
        stored = {job.stage_id: job for job in await queue.get_jobs_by_workflow_run("r")}
        delay = timedelta(milliseconds=RetryBackoff().delay_ms(1))
        assert stored["past"].next_poll_at == stored["past"].updated_at + delay
        assert stored["future"].next_poll_at == (now + HOUR).replace(microsecond=now.microsecond // 1000 * 1000)


async def test_claims_meet_without_errors(set_dsn: str) -> None:
    async with opened(set_dsn) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel(jobs(60))

        async def work() -> int:
            done = 0
            while (job := await queue.dequeue()) is not None:
                assert await queue.complete(job.job_id, job.fence) is JobAckOutcome.ACKNOWLEDGED
                done += 1
            return done

        assert sum(await asyncio.gather(*(work() for _ in range(6)))) == 60
        assert {job.status for job in await queue.get_jobs_by_workflow_run("r")} == {Status.COMPLETED}


async def test_a_callers_transaction_may_have_a_zone_of_its_own(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        async with open_postgres(dsn) as adapters, connection.transaction():
            await connection.execute("SET LOCAL timezone = 'Asia/Kolkata'")
            async with adapters.bind(connection) as tx:
                queue = queue_of(tx)
                await queue.enqueue_parallel([a_job(scheduled_for=datetime.now(UTC) - timedelta(seconds=1))])
                claimed = await queue.dequeue()
                assert claimed is not None
                assert abs(claimed.started_at - datetime.now(UTC)) < SLACK
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "backoff",
    [
        RetryBackoff(),
        RetryBackoff(base=timedelta(0)),
        RetryBackoff(factor=1),
        RetryBackoff(base=timedelta(hours=2)),
        RetryBackoff(base=timedelta(milliseconds=7), factor=1.7, cap=timedelta(minutes=1)),
        RetryBackoff(factor=1e300),
        RetryBackoff(cap=timedelta(0)),
        RetryBackoff(factor=1.0000001, cap=timedelta.max),
    ],
    ids=str,
)
async def test_the_backoff_is_that_of_every_adapter_and_never_overflows(
    own: str, raw: asyncpg.Connection, backoff: RetryBackoff
) -> None:
    attempts = [1, 2, 3, 10, 11, 12, 13, 100, 5000, 2**31 - 1]
    async with open_postgres(own, backoff=backoff) as adapters:
        queue = adapters.job_queue
        (job_id,) = await queue.enqueue_parallel([a_job()])
        await raw.execute('UPDATE job_queue SET "maxAttempts" = 2147483647')
        for attempt in attempts:
            await raw.execute("UPDATE job_queue SET attempt = $1, status = 'RUNNING'", attempt - 1)
            await raw.execute("UPDATE job_queue SET attempt = $1", min(attempt, 2**31 - 2))
            await queue.fail(job_id, "why", True)
            (stored,) = await queue.get_jobs_by_workflow_run("r")
            assert stored.next_poll_at is not None
            delay = timedelta(milliseconds=backoff.delay_ms(min(attempt, 2**31 - 2)))
            expected = stored.updated_at + delay if delay < FAR else LATEST
            assert abs(stored.next_poll_at - expected) <= timedelta(milliseconds=1)
