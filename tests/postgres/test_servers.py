"""A server that goes away and comes back, and servers of other versions."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import asyncpg
import pytest

from conformance.throwaway import ThrowawayServer, blocking_postgres
from tests.postgres.support import a_run, end_backends, inside, query, script
from workflow_adapters import (
    BackendError,
    BackendUnavailableError,
    EnqueueJobInput,
    JobAckOutcome,
    Status,
)
from workflow_adapters.ports.adapters import TransactionAdapters
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.records.job_queue import DequeueResult

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def mortal() -> Iterator[ThrowawayServer]:
    """A server that nobody else uses."""
    with blocking_postgres("embedded-16") as server:
        yield server


@pytest.fixture
def mortal_dsn(mortal: ThrowawayServer) -> Iterator[str]:
    with mortal.database() as dsn:
        yield dsn


def a_job(stage: str) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id="r", workflow_id="w", stage_id=stage)


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("lent", [True, False], ids=["a caller's pool", "our own"])
async def test_calls_work_again_once_the_server_is_back(
    mortal: ThrowawayServer, mortal_dsn: str, how: str, lent: bool
) -> None:
    pool = asyncpg.create_pool(mortal_dsn, min_size=0, max_size=4)
    async with pool, open_postgres(pool if lent else mortal_dsn, connect_timeout=timedelta(seconds=2)) as adapters:
        await adapters.migrate()
        run = await adapters.persistence.create_run(a_run())
        await adapters.job_queue.enqueue_parallel([a_job("s")])

        async def meanwhile(tx: TransactionAdapters) -> None:
            await tx.persistence.create_run(a_run())
            await asyncio.to_thread(getattr(mortal, how))
            await tx.persistence.create_run(a_run())

        try:
            with pytest.raises(BackendUnavailableError):
                await inside(adapters.transaction(), meanwhile)
            # No call says that there is no work.
            for _ in range(3):
                with pytest.raises(BackendUnavailableError):
                    await adapters.job_queue.dequeue()
        finally:
            await asyncio.to_thread(mortal.restart)
        job = await adapters.job_queue.dequeue()
        assert job is not None
        assert await adapters.job_queue.complete(job.job_id, job.fence) is JobAckOutcome.ACKNOWLEDGED
        assert [found.id for found in await adapters.persistence.get_runs_by_status(Status.PENDING)] == [run.id]


class Workers:
    """Drain a queue, each job with an effect in the transaction of its completion; count what goes wrong."""

    def __init__(self, adapters: PostgresAdapters, jobs: int) -> None:
        self._adapters = adapters
        self._jobs = jobs
        self.errors: Counter[str] = Counter()

    async def work(self) -> None:
        """Until all jobs are completed."""
        while not await self._is_done():
            try:
                job = await self._adapters.job_queue.dequeue()
                if job is not None:
                    await self._finish(job)
                else:
                    # What a claim with an unknown outcome took comes back by its lease.
                    await self._adapters.job_queue.release_stale_jobs(timedelta(milliseconds=500))
            except BackendError as error:
                self.errors[type(error).__name__] += 1

    async def _is_done(self) -> bool:
        try:
            statuses = (await self._adapters.operations.queue_stats()).by_status
        except BackendUnavailableError:
            return False
        return statuses[Status.COMPLETED] == self._jobs

    async def _finish(self, job: DequeueResult) -> None:
        async def effect(tx: TransactionAdapters) -> None:
            if await tx.job_queue.complete(job.job_id, job.fence) is JobAckOutcome.ACKNOWLEDGED:
                await tx.connection.execute("INSERT INTO effects VALUES ($1)", job.job_id)

        while True:
            try:
                return await inside(self._adapters.transaction(), effect)
            except (BackendError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
                # asyncpg's own are those of the caller's own statement.
                self.errors[type(error).__name__] += 1


async def test_workers_go_on_while_their_backends_are_ended(dsn: str) -> None:
    """Every job ends completed, with its effect exactly once."""
    jobs = 150
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    await script(dsn, "CREATE TABLE effects (job text)")

    async def trouble() -> None:
        while True:
            await end_backends(dsn)

    async with open_postgres(dsn, max_connections=4) as adapters:
        await adapters.job_queue.enqueue_parallel([a_job(f"s{n}") for n in range(jobs)])
        workers = Workers(adapters, jobs)
        troublemaker = asyncio.create_task(trouble())
        async with asyncio.timeout(120):
            await asyncio.gather(*(workers.work() for _ in range(4)))
        troublemaker.cancel()
        await asyncio.wait([troublemaker])
        statuses = (await adapters.operations.queue_stats()).by_status
    effects = [row[0] for row in await query(dsn, "SELECT job FROM effects")]
    assert statuses[Status.COMPLETED] == jobs
    assert len(effects) == len(set(effects)) == jobs
    assert workers.errors
    gc.collect()
    assert complaints == []


async def test_the_engine_on_other_versions(other_server: ThrowawayServer) -> None:
    with other_server.database() as dsn:
        await the_engine_works(dsn)


async def the_engine_works(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        await adapters.migrate()
        await adapters.check_schema()
        async with adapters.transaction() as tx:
            run = await tx.persistence.create_run(a_run())
            with pytest.raises(KeyError):
                await inside(tx.transaction(), fail)
            await tx.job_queue.enqueue_parallel([a_job("s")])
        assert [found.id for found in await adapters.persistence.get_runs_by_status(Status.PENDING)] == [run.id]
        await end_backends(dsn)
        job = await adapters.job_queue.dequeue()
        assert job is not None
        assert await adapters.job_queue.complete(job.job_id, job.fence) is JobAckOutcome.ACKNOWLEDGED


async def fail(tx: TransactionAdapters) -> None:
    await tx.persistence.create_run(a_run())
    raise KeyError
