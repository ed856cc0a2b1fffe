"""Many processes on one file."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.sqlite.claimers import job
from workflow_adapters import Adapters, Status, open_sqlite

pytestmark = pytest.mark.asyncio

PROCESSES = 8
JOBS = 2000


def start_claimer(does: str, path: Path, argument: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "tests.sqlite.claimers", does, str(path), str(argument)]
    root = Path(__file__).parent.parent.parent
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def jobs_by_status(adapters: Adapters) -> dict[Status, int]:
    stats = await adapters.operations.queue_stats()
    return {status: count for status, count in stats.by_status.items() if count}


async def test_eight_processes_claim_each_job_exactly_once(path: Path) -> None:
    async with open_sqlite(path) as adapters:
        await adapters.migrate()
        enqueued = await adapters.job_queue.enqueue_parallel([job(n) for n in range(JOBS)])
        claimers = [start_claimer("claim_all", path, 4) for _ in range(PROCESSES)]
        answers = await asyncio.gather(*(asyncio.to_thread(claimer.communicate, None, 120) for claimer in claimers))
        assert [(claimer.returncode, errors) for claimer, (_, errors) in zip(claimers, answers, strict=True)] == [
            (0, "")
        ] * PROCESSES
        said = [line.split() for claims, _ in answers for line in claims.splitlines()]
        assert Counter(job_id for job_id, _, _ in said) == Counter(enqueued)
        assert {(attempt, acknowledgement) for _, attempt, acknowledgement in said} == {("1", "acknowledged")}
        assert await jobs_by_status(adapters) == {Status.COMPLETED: JOBS}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_a_killed_process_holds_no_lock_and_its_jobs_come_back(path: Path) -> None:
    async with open_sqlite(path) as adapters:
        await adapters.migrate()
        await adapters.job_queue.enqueue_parallel([job(n) for n in range(10)])
        hanging = start_claimer("claim_and_hang", path, 4)
        assert hanging.stdout is not None
        assert await asyncio.to_thread(hanging.stdout.readline) == "hanging\n"
        os.kill(hanging.pid, signal.SIGKILL)
        await asyncio.to_thread(hanging.communicate)
        # The claim whose transaction was open is undone; the others are leases of a worker that is no more.
        assert await jobs_by_status(adapters) == {Status.PENDING: 6, Status.RUNNING: 4}
        assert await adapters.job_queue.release_stale_jobs(timedelta(seconds=-1)) == 4
        claimed = [await adapters.job_queue.dequeue() for _ in range(10)]
        assert sorted(each.attempt for each in claimed if each is not None) == [1] * 6 + [2] * 4


async def test_two_bundles_on_one_file_are_two_workers(path: Path) -> None:
    async with open_sqlite(path) as one, open_sqlite(path) as other:
        await asyncio.gather(one.migrate(), other.migrate())
        await one.job_queue.enqueue_parallel([job(n) for n in range(100)])

        async def claim(adapters: Adapters) -> list[str]:
            ids: list[str] = []
            while (claimed := await adapters.job_queue.dequeue()) is not None:
                ids.append(claimed.job_id)
            return ids

        claims = await asyncio.gather(claim(one), claim(other), claim(one), claim(other))
        assert len({job_id for ids in claims for job_id in ids}) == sum(map(len, claims)) == 100


async def test_a_write_after_a_read_in_a_transaction_never_loses_its_snapshot(path: Path) -> None:
    """A transaction holds the write lock from its first statement, so nobody can commit between a read and a write."""
    async with open_sqlite(path) as one, open_sqlite(path) as other:
        await one.migrate()
        (first, second) = await one.job_queue.enqueue_parallel([job(1), job(2)])
        async with one.transaction() as tx:
            assert await tx.operations.get_job(first) is not None
            elsewhere = asyncio.create_task(other.operations.cancel_job(second))
            for _ in range(5):
                await asyncio.sleep(0)
            assert await tx.operations.cancel_job(first)
        assert await elsewhere
        assert await jobs_by_status(one) == {Status.CANCELLED: 2}
