"""A worker on a Postgres that is restarted, and whose connections are cut: each job takes effect exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta

import anyio
import asyncpg
import pytest

from conformance.throwaway import ThrowawayServer
from tests.runtime.support import enqueue, until, working
from tests.throwaway.support import server_or_skip
from workflow_adapters import Adapters, Status, open_adapters
from workflow_adapters.runtime import JobContext, Reaper, Worker

pytestmark = pytest.mark.asyncio
JOBS = 60
LEASE = timedelta(seconds=2)

Trouble = Callable[[ThrowawayServer, str], Awaitable[None]]


@pytest.fixture(scope="module")
def server() -> Iterator[ThrowawayServer]:
    with server_or_skip("embedded-16") as server:
        yield server


async def restart(server: ThrowawayServer, dsn: str) -> None:
    await asyncio.to_thread(server.restart)


async def crash(server: ThrowawayServer, dsn: str) -> None:
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(0.3)
    await asyncio.to_thread(server.restart)


async def cut_connections(server: ThrowawayServer, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    for _ in range(5):
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await asyncio.sleep(0.2)
    await connection.close()


async def charge(ctx: JobContext) -> None:
    """The effect is a plain row, with no key that could hide a second one."""
    await anyio.sleep(0.02)
    async with ctx.transaction() as tx:
        await tx.connection.execute("INSERT INTO effects (stage) VALUES ($1)", ctx.job.stage_id)


async def all_completed(adapters: Adapters) -> bool:
    jobs = await adapters.job_queue.get_jobs_by_workflow_run("r")
    return len(jobs) == JOBS and all(job.status is Status.COMPLETED for job in jobs)


@pytest.mark.parametrize("trouble", [restart, crash, cut_connections])
async def test_each_job_takes_effect_once(server: ThrowawayServer, trouble: Trouble) -> None:
    with server.database() as dsn:
        connection = await asyncpg.connect(dsn)
        await connection.execute("CREATE TABLE effects (stage text NOT NULL)")
        await connection.close()
        async with open_adapters(dsn) as adapters:
            await adapters.migrate()
            await enqueue(adapters, *[f"s{n}" for n in range(JOBS)])
            counts = await _work_through(adapters, server, dsn, trouble)
            connection = await asyncpg.connect(dsn)
            rows = await connection.fetch("SELECT stage, count(*) AS times FROM effects GROUP BY stage")
            await connection.close()
    assert {row["stage"] for row in rows} == {f"s{n}" for n in range(JOBS)}
    assert [row["stage"] for row in rows if row["times"] != 1] == [], counts


async def _work_through(adapters: Adapters, server: ThrowawayServer, dsn: str, trouble: Trouble) -> object:
    reaper = Reaper(adapters.job_queue, stale_after=LEASE, every=timedelta(milliseconds=200), fail_spent=False)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reaper.run)
        async with working(adapters, charge, lease=LEASE, concurrency=4) as worker:
            await until(lambda: _some_done(worker))
            await trouble(server, dsn)
            await until(lambda: _done(adapters))
        reaper.stop()
        return worker.observation.counts


async def _some_done(worker: Worker) -> bool:
    return worker.observation.counts.total() > 5


async def _done(adapters: Adapters) -> bool:
    try:
        return await all_completed(adapters)
    except Exception:  # noqa: BLE001  # the database may be away when we look
        return False
