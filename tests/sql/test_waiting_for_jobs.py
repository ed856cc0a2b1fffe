"""wait_for_jobs on SQLite: woken in this process, and no spinning on jobs that the waiter does not serve."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tests.sql.sqlite_database import PlainDatabase
from tests.worked_examples.examples import MINUTE, START, job
from workflow_adapters import ManualClock, ServedDefinition
from workflow_adapters.sqlite.job_signal import JobSignal

pytestmark = pytest.mark.asyncio

Build = Callable[..., Any]


async def test_a_job_that_is_enqueued_here_wakes_who_waits(database: PlainDatabase, ports_on: Build) -> None:
    queue = ports_on(database).job_queue
    woken: list[bool] = []

    async def wait() -> None:
        woken.append(await queue.wait_for_jobs(MINUTE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await queue.enqueue_parallel([job()])
    assert woken == [True]


async def test_a_date_that_comes_is_noticed(database: PlainDatabase, ports_on: Build, clock: ManualClock) -> None:
    queue = ports_on(database).job_queue
    await queue.enqueue_parallel([job(scheduled_for=START + MINUTE)])
    assert not await queue.wait_for_jobs(timedelta(0))
    clock.advance(MINUTE)
    assert await queue.wait_for_jobs(timedelta(0))


async def test_looks_become_rarer_until_a_claim_or_a_change(database: PlainDatabase, ports_on: Build) -> None:
    queue = ports_on(database).job_queue
    signal: JobSignal = queue._signal
    await queue.enqueue_parallel([job(workflow_id="foreign")])
    pauses: list[float] = []
    for _ in range(7):
        assert await queue.wait_for_jobs(timedelta(0))
        assert await queue.dequeue([ServedDefinition(workflow_id="mine", version="1")]) is None
        pauses.append(signal.pause)
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert await queue.dequeue() is not None
    assert signal.pause == 0.0
    assert not await queue.wait_for_jobs(timedelta(0))


async def test_a_change_ends_the_pause(database: PlainDatabase, ports_on: Build) -> None:
    queue = ports_on(database).job_queue
    await queue.enqueue_parallel([job("foreign")])
    for _ in range(9):
        await queue.wait_for_jobs(timedelta(0))
    looks = len(database.statements)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.wait_for_jobs, MINUTE)
        await anyio.wait_all_tasks_blocked()
        assert len(database.statements) == looks
        await queue.enqueue_parallel([job("mine")])
    assert len(database.statements) == looks + 2


async def test_a_requeued_job_wakes_who_waits(database: PlainDatabase, ports_on: Build) -> None:
    ports = ports_on(database)
    [job_id] = await ports.job_queue.enqueue_parallel([job()])
    await ports.operations.cancel_job(job_id)
    woken: list[bool] = []

    async def wait() -> None:
        woken.append(await ports.job_queue.wait_for_jobs(MINUTE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert await ports.operations.requeue_job(job_id)
    assert woken == [True]
