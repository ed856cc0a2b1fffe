"""Every job once and for all, while the server ends connections and the sweep gives jobs back.

CHAOS_JOBS=20000 is the full size.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.postgres_queue.support import jobs
from workflow_adapters import BackendError
from workflow_adapters.postgres.bundle import open_postgres

pytestmark = pytest.mark.asyncio

JOBS = int(os.environ.get("CHAOS_JOBS", "150"))
PROCESSES = 2
END_OURS = """
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'workflow_adapters%'
"""


async def worker(dsn: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.postgres_queue.chaos", dsn, stdout=asyncio.subprocess.PIPE
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    return json.loads(said)


async def sweep(dsn: str, met: Counter[str]) -> None:
    async with open_postgres(dsn) as adapters:
        while True:
            try:
                await adapters.job_queue.release_stale_jobs(timedelta(seconds=1))
            except BackendError as error:
                met[type(error).__name__] += 1
            await asyncio.sleep(0.1)


async def test_each_job_has_its_effect_once(dsn: str, raw: asyncpg.Connection) -> None:
    await raw.execute("CREATE TABLE effects (job_id text NOT NULL)")
    async with open_postgres(dsn) as adapters:
        ids = await adapters.job_queue.enqueue_parallel(jobs(JOBS))
    met: Counter[str] = Counter()
    sweeping = asyncio.create_task(sweep(dsn, met))
    workers = [asyncio.create_task(worker(dsn)) for _ in range(PROCESSES)]
    ended = 0
    try:
        while not all(task.done() for task in workers):
            ended += len(await raw.fetch(END_OURS))
            await asyncio.sleep(0.2)
    finally:
        sweeping.cancel()
        await asyncio.wait([sweeping])
    for task in workers:
        said = task.result()
        assert said["unhandled"] == []
        met.update(said["met"])
    print(f"{JOBS} jobs, {ended} connections ended, met: {dict(met)}")  # noqa: T201 - which errors, and how often
    effects = Counter(row[0] for row in await raw.fetch("SELECT job_id FROM effects"))
    assert effects == dict.fromkeys(ids, 1)
    statuses = await raw.fetch("SELECT status::text, count(*) FROM job_queue GROUP BY status")
    assert [tuple(row) for row in statuses] == [("COMPLETED", JOBS)]
    assert ended > PROCESSES
