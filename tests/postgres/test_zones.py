"""Sessions, roles and databases of any time zone, and of any default isolation level."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone

import asyncpg
import pytest
import pytest_asyncio

from tests.postgres.support import a_run, query, script
from workflow_adapters import (
    CreateAnnotationInput,
    CreateStageInput,
    EnqueueJobInput,
    JobAckOutcome,
    ManualClock,
    NewStep,
    StepKind,
    StepStatus,
    UpdateRunInput,
)
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres

pytestmark = pytest.mark.asyncio

INSTANT = datetime(2026, 3, 29, 1, 30, 0, 123000, tzinfo=timezone(timedelta(hours=5, minutes=30)))
STORED = "2026-03-28 20:00:00.123"


@pytest_asyncio.fixture(params=["Asia/Kolkata", "America/New_York"])
async def zoned_dsn(dsn: str, request: pytest.FixtureRequest) -> str:
    name = dsn.rpartition("/")[2].partition("?")[0]
    await script(dsn, f"ALTER DATABASE \"{name}\" SET timezone = '{request.param}'")
    await script(dsn, f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'")
    return dsn


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[PostgresAdapters]:
    """On a pool of a caller, so that nothing of a connection of ours sets it right."""
    async with asyncpg.create_pool(dsn, min_size=0, max_size=4) as pool, open_postgres(pool) as adapters:
        yield adapters


def a_job(stage: str = "s", **fields: object) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id="r", workflow_id="w", stage_id=stage, **fields)  # type: ignore[arg-type]  # any field of a job


async def test_the_session_is_where_we_think(zoned_dsn: str) -> None:
    async with opened(zoned_dsn) as zoned:
        async with zoned.transaction() as tx:
            [[zone]] = await tx.connection.fetch("SHOW timezone")
        assert zone in ("Asia/Kolkata", "America/New_York")


async def test_an_instant_comes_back_as_it_was(zoned_dsn: str) -> None:
    async with opened(zoned_dsn) as zoned:
        run = await zoned.persistence.create_run(a_run())
        await zoned.persistence.update_run(run.id, UpdateRunInput(started_at=INSTANT))
        found = await zoned.persistence.get_run(run.id)
        assert found is not None
        assert found.started_at is not None
        assert (found.started_at, found.started_at.tzinfo) == (INSTANT, UTC)
        async with zoned.transaction() as tx:
            [[stored]] = await tx.connection.fetch('SELECT "startedAt"::text FROM workflow_runs')
        assert stored == STORED


async def test_instants_of_every_table(zoned_dsn: str) -> None:
    async with opened(zoned_dsn) as zoned:
        persistence = zoned.persistence
        run = await persistence.create_run(a_run())
        stage = await persistence.create_stage(
            CreateStageInput(
                workflow_run_id=run.id,
                stage_id="s",
                stage_name="S",
                stage_number=1,
                execution_group=1,
                started_at=INSTANT,
            )
        )
        step = NewStep(
            stage_record_id=stage.id,
            step_id="one",
            seq=1,
            kind=StepKind.WAIT,
            status=StepStatus.RUNNING,
            attempt=1,
            lease_expires_at=INSTANT,
        )
        assert stage.started_at == INSTANT
        assert (await zoned.step_ledger.claim(step)).record.lease_expires_at == INSTANT
        await persistence.append_annotations(
            [CreateAnnotationInput(workflow_run_id=run.id, scope="run", key="k", value=1)]
        )
        [annotation] = await persistence.list_annotations(run.id)
        assert abs(annotation.created_at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_leases_are_as_old_as_they_are(zoned_dsn: str) -> None:
    async with opened(zoned_dsn) as zoned:
        queue = zoned.job_queue
        await queue.enqueue_parallel([a_job()])
        job = await queue.dequeue()
        assert job is not None
        assert abs(job.started_at - datetime.now(UTC)) < timedelta(minutes=1)
        assert await queue.release_stale_jobs(timedelta(minutes=1)) == 0
        assert await queue.expire_runaway_jobs(timedelta(minutes=1)) == 0
        assert await queue.release_stale_jobs(timedelta(minutes=-1)) == 1
        again = await queue.dequeue()
        assert again is not None
        assert await queue.complete(again.job_id, job.fence) is JobAckOutcome.SUPERSEDED
        assert await queue.complete(again.job_id, again.fence) is JobAckOutcome.ACKNOWLEDGED


async def test_jobs_are_due_when_they_are_due(zoned_dsn: str) -> None:
    async with opened(zoned_dsn) as zoned:
        now = datetime.now(UTC)
        await zoned.job_queue.enqueue_parallel(
            [
                a_job("past", scheduled_for=now - timedelta(minutes=10)),
                a_job("future", scheduled_for=now + timedelta(hours=2)),
            ]
        )
        first = await zoned.job_queue.dequeue()
        assert first is not None
        assert first.stage_id == "past"
        assert await zoned.job_queue.dequeue() is None


async def test_single_calls_meet_no_serialization_failure(zoned_dsn: str) -> None:
    """The level above READ COMMITTED is the caller's; a claim that meets 40001 is tried again."""
    async with opened(zoned_dsn) as zoned:
        await zoned.job_queue.enqueue_parallel([a_job(f"s{n}") for n in range(40)])

        async def drain() -> list[str]:
            mine: list[str] = []
            while (job := await zoned.job_queue.dequeue()) is not None:
                mine.append(job.job_id)
                assert await zoned.job_queue.complete(job.job_id, job.fence) is JobAckOutcome.ACKNOWLEDGED
            return mine

        done = [id for part in await asyncio.gather(*(drain() for _ in range(4))) for id in part]
        assert len(done) == len(set(done)) == 40


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_hosts_clock_that_is_off_changes_no_lease(dsn: str, hours: int) -> None:
    clock = ManualClock(datetime.now(UTC) + timedelta(hours=hours))
    async with open_postgres(dsn, clock=clock) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel([a_job()])
        job = await queue.dequeue()
        assert job is not None
        assert abs(job.started_at - datetime.now(UTC)) < timedelta(minutes=1)
        assert await queue.release_stale_jobs(timedelta(minutes=5)) == 0
        await queue.fail(job.job_id, "no", should_retry=True, fence=job.fence)
        [[delay]] = await query(dsn, """SELECT extract(epoch FROM "nextPollAt" - "updatedAt")::float8 FROM job_queue""")
        assert 1 <= delay <= 4
        run = await adapters.persistence.create_run(a_run())
        assert run.created_at == clock.now()
