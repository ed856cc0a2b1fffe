"""Through PgBouncer in transaction mode: no statement or setting outlives a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from conformance.throwaway import ThrowawayServer
from tests.postgres.bouncer import Bouncer, is_installed, running_bouncer
from tests.postgres.support import a_run, inside, query, script
from workflow_adapters import (
    BackendUnavailableError,
    ConfigurationError,
    CreateOutboxEventInput,
    EnqueueJobInput,
    JobAckOutcome,
    JobQueueFairness,
    OutcomeUnknownError,
    SchemaError,
    Status,
    UpdateRunInput,
)
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.postgres.job_channel import ListenerState
from workflow_adapters.records.status import TERMINAL_STATUSES

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(not is_installed(), reason="pgbouncer is not installed (Debian: apt-get install pgbouncer)"),
]


@pytest.fixture(scope="module")
def bouncer(server: ThrowawayServer) -> Iterator[Bouncer]:
    with running_bouncer(server.dsn) as bouncer:
        yield bouncer


@pytest.fixture
def pooled(bouncer: Bouncer, dsn: str) -> str:
    return bouncer.dsn(dsn)


def a_job(stage: str, **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id="r", workflow_id="w", stage_id=stage, **fields)


async def test_ports_work_through_it(pooled: str) -> None:
    async with open_postgres(pooled, pgbouncer=True) as adapters:
        await adapters.check_schema()
        async with adapters.transaction() as tx:
            run = await tx.persistence.create_run(a_run())
            await tx.job_queue.enqueue_parallel([a_job(f"s{n}") for n in range(20)])
            event = CreateOutboxEventInput(
                workflow_run_id=run.id, event_type="e", payload={}, causation_id="c", occurred_at=datetime.now(UTC)
            )
            await tx.persistence.append_outbox_events([event])
            async with tx.transaction() as inner:
                await inner.persistence.update_run(run.id, UpdateRunInput(status=Status.RUNNING))
        assert await adapters.persistence.get_run_status(run.id) is Status.RUNNING
        assert len(await adapters.persistence.claim_unpublished_outbox_events()) == 1


@pytest.mark.parametrize("fairness", [None, JobQueueFairness(max_concurrent_per_group=2)])
async def test_workers_drain_a_queue_through_it(pooled: str, fairness: JobQueueFairness | None) -> None:
    async with open_postgres(pooled, pgbouncer=True, fairness=fairness) as adapters:
        await adapters.job_queue.enqueue_parallel([a_job(f"s{n}", group_key=f"g{n % 3}") for n in range(60)])

        async def drain() -> list[str]:
            mine: list[str] = []
            while (job := await adapters.job_queue.dequeue()) is not None:
                mine.append(job.job_id)
                assert await adapters.job_queue.complete(job.job_id, job.fence) is JobAckOutcome.ACKNOWLEDGED
            return mine

        done = [id for part in await asyncio.gather(*(drain() for _ in range(8))) for id in part]
        assert len(set(done)) == len(done)
        while (job := await adapters.job_queue.dequeue()) is not None:
            await adapters.job_queue.complete(job.job_id, job.fence)
        statuses = (await adapters.operations.queue_stats()).by_status
    assert sum(statuses[status] for status in TERMINAL_STATUSES) == 60


async def test_it_sends_no_setting_but_the_application_name(dsn: str, pooled: str) -> None:
    """1.18 refuses the others; which is what happens without the option."""
    async with open_postgres(pooled) as adapters:
        with pytest.raises(BackendUnavailableError, match="pgbouncer=True"):
            await adapters.persistence.get_run("x")
    async with (
        open_postgres(pooled, pgbouncer=True, application_name="workflow_adapters x") as adapters,
        adapters.transaction() as tx,
    ):
        [[name]] = await tx.connection.fetch("SHOW application_name")
    assert name == "workflow_adapters x"
    assert await query(dsn, "SELECT 1") == [(1,)]


async def test_a_transaction_has_an_explicit_level_and_a_single_statement_is_tried_again(dsn: str, pooled: str) -> None:
    name = dsn.rpartition("/")[2].partition("?")[0]
    await script(dsn, f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'")
    async with open_postgres(pooled, pgbouncer=True) as adapters:
        async with adapters.transaction() as tx:
            assert await tx.connection.fetch("SHOW transaction_isolation") == [("read committed",)]
        await adapters.job_queue.enqueue_parallel([a_job(f"s{n}") for n in range(40)])
        jobs = await asyncio.gather(*(adapters.job_queue.dequeue() for _ in range(40)))
        assert len({job.job_id for job in jobs if job is not None}) == 40


async def test_migrating_through_it_is_refused(bouncer: Bouncer, empty_dsn: str) -> None:
    through = bouncer.dsn(empty_dsn)
    async with open_postgres(through, pgbouncer=True) as adapters:
        with pytest.raises(ConfigurationError, match="PgBouncer"):
            await adapters.migrate()
        assert await adapters.migrate(plan=True)
        with pytest.raises(SchemaError, match="migrate"):
            await adapters.persistence.get_run("x")
    # A pool that was made for it says nothing of what is in between; the server's answers do.
    pool = await asyncpg.create_pool(through, min_size=0, max_size=1, statement_cache_size=0)
    async with pool, open_postgres(pool) as adapters:
        with pytest.raises(ConfigurationError, match="PgBouncer"):
            await adapters.migrate()
    assert await query(empty_dsn, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'") == []


async def test_it_does_not_listen_there(pooled: str) -> None:
    async with open_postgres(pooled, pgbouncer=True, poll_interval=timedelta(milliseconds=50)) as adapters:
        assert await adapters.job_queue.wait_for_jobs(timedelta(0)) is False
        waiting = asyncio.create_task(adapters.job_queue.wait_for_jobs(timedelta(seconds=30)))
        async with open_postgres(pooled, pgbouncer=True) as producer:
            await producer.job_queue.enqueue_parallel([a_job("s")])
        assert await waiting is True
        assert adapters.listener_state is ListenerState.OFF


async def test_the_time_limit_is_the_clients(pooled: str) -> None:
    async def wait_for_lock(adapters: PostgresAdapters) -> None:
        async with adapters.transaction() as tx:
            await tx.connection.execute("LOCK TABLE workflow_runs")
            await adapters.persistence.create_run(a_run())

    async with open_postgres(pooled, pgbouncer=True, statement_timeout=timedelta(milliseconds=100)) as adapters:
        with pytest.raises(OutcomeUnknownError, match="time limit"):
            await wait_for_lock(adapters)
        assert await adapters.persistence.get_runs_by_status(Status.PENDING) == []


async def test_its_pools_may_be_handed_in(pooled: str) -> None:
    pool = await asyncpg.create_pool(pooled, min_size=0, max_size=2, statement_cache_size=0)
    async with pool, open_postgres(pool, pgbouncer=True) as adapters:
        run = await adapters.persistence.create_run(a_run())
        async with pool.acquire() as connection, connection.transaction():
            await inside(adapters.bind(connection), lambda tx: tx.persistence.get_run(run.id))


async def test_prepared_statements_that_do_not_last_are_told(pooled: str) -> None:
    """Without statement_cache_size=0: the first statement that meets another server connection says what to do."""
    pool = await asyncpg.create_pool(pooled, min_size=2, max_size=2)
    async with pool, open_postgres(pool) as adapters:

        async def work() -> None:
            for _ in range(50):
                await asyncio.gather(*(adapters.persistence.get_run("x") for _ in range(8)))

        with pytest.raises(ConfigurationError, match="pgbouncer=True"):
            await work()
