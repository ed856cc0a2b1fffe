"""Waiting for jobs: signals, looks, and LISTEN that comes and goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.postgres.proxy import Proxy
from tests.postgres.support import query, script, until
from workflow_adapters import BackendUnavailableError, EnqueueJobInput
from workflow_adapters.postgres import job_channel
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.postgres.job_channel import ListenerState, channel_name
from workflow_adapters.postgres.wake_ups import WakeUps

pytestmark = pytest.mark.asyncio

LONG = timedelta(hours=1)


async def woken(waiting: asyncio.Task[bool]) -> bool:
    """What a wait says that ends long before its timeout."""
    async with asyncio.timeout(20):
        return await waiting


class Queue:
    """Answers looks, and counts them."""

    def __init__(self, *answers: float | None) -> None:
        self.answers = list(answers)
        self.looks = 0

    async def next_due(self) -> float | None:
        await asyncio.sleep(0)
        self.looks += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_a_job_that_is_due_ends_the_wait_at_once() -> None:
    assert await WakeUps(60).wait(30, Queue(0.0).next_due) is True


async def test_an_empty_queue_ends_it_at_the_timeout() -> None:
    queue = Queue(None)
    assert await WakeUps(60).wait(0, queue.next_due) is False
    assert queue.looks == 1


async def test_a_job_ends_it_when_it_becomes_due() -> None:
    queue = Queue(0.001, 0.0)
    assert await WakeUps(60).wait(30, queue.next_due) is True
    assert queue.looks == 2


async def test_who_waits_looks_every_so_often() -> None:
    queue = Queue(None, None, None, 0.0)
    assert await WakeUps(0.001).wait(30, queue.next_due) is True
    assert queue.looks == 4


async def test_a_signal_ends_every_wait() -> None:
    wake_ups, queue = WakeUps(60), Queue(None)
    waiting = [asyncio.create_task(wake_ups.wait(30, queue.next_due)) for _ in range(3)]
    await until(lambda: queue.looks == 3)
    await asyncio.sleep(0)
    wake_ups.signal()
    assert await asyncio.gather(*waiting) == [True] * 3


async def test_a_signal_that_finds_nobody_waiting_is_kept_once() -> None:
    wake_ups, queue = WakeUps(60), Queue(None)
    wake_ups.signal()
    wake_ups.signal()
    assert await wake_ups.wait(30, queue.next_due) is True
    assert queue.looks == 0
    assert await wake_ups.wait(0, queue.next_due) is False


async def test_a_signal_during_the_look_is_not_missed() -> None:
    wake_ups = WakeUps(60)

    async def look() -> None:
        wake_ups.signal()

    assert await wake_ups.wait(30, look) is True


async def test_somebody_elses_job_does_not_make_a_worker_spin() -> None:
    wake_ups, queue = WakeUps(0.2), Queue(0.0)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    rounds = 0
    while loop.time() < begun + 0.5:
        assert await wake_ups.wait(30, queue.next_due) is True
        rounds += 1
    assert rounds == queue.looks <= 8
    wake_ups.signal()
    assert await wake_ups.wait(30, queue.next_due) is True


async def test_an_error_of_a_look_is_no_empty_queue() -> None:
    async def look() -> None:
        raise BackendUnavailableError("down")

    with pytest.raises(BackendUnavailableError):
        await WakeUps(60).wait(30, look)


async def test_a_cancelled_wait_leaves_nothing() -> None:
    wake_ups, queue = WakeUps(60), Queue(None)
    waiting = asyncio.create_task(wake_ups.wait(30, queue.next_due))
    await until(lambda: queue.looks == 1)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert wake_ups._waiters == set()


def a_job(stage: str = "s", **fields: Any) -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id="r", workflow_id="w", stage_id=stage, **fields)


@asynccontextmanager
async def listening(dsn: Any, **options: Any) -> AsyncIterator[PostgresAdapters]:
    """A worker that has looked once, and hears. It would look again only after a minute."""
    chosen: dict[str, Any] = {"poll_interval": timedelta(minutes=1), **options}
    async with open_postgres(dsn, **chosen) as worker:
        assert await worker.job_queue.wait_for_jobs(timedelta(0)) is False
        await until(lambda: worker.listener_state is ListenerState.LISTENING)
        # The look that comes with LISTEN.
        assert await worker.job_queue.wait_for_jobs(timedelta(0)) is False
        yield worker


async def test_a_job_of_another_process_wakes_a_worker(dsn: str) -> None:
    async with listening(dsn) as worker, open_postgres(dsn) as producer:
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        await asyncio.sleep(0)
        await producer.job_queue.enqueue_parallel([a_job()])
        assert await woken(waiting) is True
        assert producer.listener_state is ListenerState.OFF


async def test_a_job_of_a_transaction_wakes_at_its_commit(dsn: str) -> None:
    async with listening(dsn) as worker, open_postgres(dsn) as producer:
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        async with producer.transaction() as tx:
            await tx.job_queue.enqueue_parallel([a_job()])
            await asyncio.sleep(0.1)
            assert not waiting.done()
        assert await woken(waiting) is True


async def test_a_job_of_a_bound_transaction_wakes_when_it_is_committed_soon(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with listening(dsn) as worker, open_postgres(dsn) as producer:
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        async with connection.transaction(), producer.bind(connection) as tx:
            await tx.job_queue.enqueue_parallel([a_job()])
        assert await woken(waiting) is True
    await connection.close()


async def test_a_job_of_the_same_bundle_needs_no_notification(dsn: str) -> None:
    async with open_postgres(dsn, wake_ups=False, poll_interval=timedelta(minutes=1)) as adapters:
        assert await adapters.job_queue.wait_for_jobs(timedelta(0)) is False
        waiting = asyncio.create_task(adapters.job_queue.wait_for_jobs(LONG))
        await asyncio.sleep(0)
        await adapters.job_queue.enqueue_parallel([a_job()])
        assert await woken(waiting) is True
        assert adapters.listener_state is ListenerState.OFF


async def test_a_later_job_wakes_when_it_is_due(dsn: str) -> None:
    async with listening(dsn) as worker:
        due = datetime.now(UTC) + timedelta(milliseconds=300)
        await worker.job_queue.enqueue_parallel([a_job(scheduled_for=due)])
        while await worker.job_queue.dequeue() is None:
            assert await worker.job_queue.wait_for_jobs(LONG) is True


async def test_many_writes_are_one_notification_in_a_while(dsn: str) -> None:
    heard: list[str] = []
    ear = await asyncpg.connect(dsn)
    await ear.add_listener(channel_name("public"), lambda *said: heard.append(said[-1]))
    async with open_postgres(dsn) as producer:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for n in range(200):
            await producer.job_queue.enqueue_parallel([a_job(f"s{n}")])
        windows = (loop.time() - begun) / job_channel._NOTIFY_EVERY
        await until(lambda: heard)
    # What was left unsaid was said on leaving.
    await until(lambda: len(heard) >= 2)
    assert len(heard) <= windows + 3
    assert set(heard) == {""}
    await ear.close()


async def test_the_echo_of_our_own_notification_wakes_nobody(dsn: str) -> None:
    heard: list[str] = []
    ear = await asyncpg.connect(dsn)
    await ear.add_listener(channel_name("public"), lambda *said: heard.append(said[-1]))
    async with listening(dsn) as worker:
        await worker.job_queue.enqueue_parallel([a_job()])
        assert await worker.job_queue.wait_for_jobs(LONG) is True
        assert await worker.job_queue.dequeue() is not None
        await until(lambda: heard)
        await asyncio.sleep(0.05)
        assert await worker.job_queue.wait_for_jobs(timedelta(0)) is False
    await ear.close()


async def test_the_last_word_is_said_on_leaving(dsn: str) -> None:
    async with listening(dsn) as worker:
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        async with open_postgres(dsn) as producer:
            await producer.job_queue.enqueue_parallel([a_job()])
        assert await woken(waiting) is True


async def test_listen_is_taken_up_again_when_it_is_lost(dsn: str) -> None:
    async with Proxy(dsn).running() as proxy, listening(proxy.dsn) as worker:
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        await until(lambda: worker._shared.home._wake_ups._waiters)
        proxy.swallow()
        proxy.cut()
        await until(lambda: worker.listener_state is ListenerState.CONNECTING)
        # Committed while nobody listens, and without a word: found by the look that comes with the new LISTEN.
        await script(dsn, SILENT_JOB)
        assert not waiting.done()
        proxy.heal()
        proxy.cut()
        assert await woken(waiting) is True
        await until(lambda: worker.listener_state is ListenerState.LISTENING)


SILENT_JOB = """
INSERT INTO job_queue (id, "createdAt", "updatedAt", "workflowRunId", "stageId", payload)
VALUES ('silent', now(), now(), 'r', 'silent', '{"_workflowId": "w"}')
"""


async def test_a_line_that_is_dead_without_a_word_is_noticed(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_channel, "KEEPALIVE_SECONDS", 0.05)
    async with Proxy(dsn).running() as proxy, listening(proxy.dsn) as worker:
        proxy.swallow()
        await until(lambda: worker.listener_state is ListenerState.CONNECTING)
        proxy.heal()
        await until(lambda: worker.listener_state is ListenerState.LISTENING)
        await worker.job_queue.wait_for_jobs(timedelta(0))
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        async with open_postgres(dsn) as producer:
            await producer.job_queue.enqueue_parallel([a_job()])
            assert await woken(waiting) is True


async def test_a_job_starts_within_the_poll_interval_where_nothing_is_heard(dsn: str) -> None:
    async with Proxy(dsn).running() as proxy, listening(proxy.dsn, poll_interval=timedelta(seconds=0.1)) as worker:
        # The listener's connection alone is dead: the others are opened afterwards.
        proxy.cut()
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        await script(dsn, SILENT_JOB)
        assert await woken(waiting) is True


async def test_a_callers_pool_spares_a_connection_for_it(dsn: str) -> None:
    pool = await asyncpg.create_pool(dsn, min_size=0, max_size=3)
    async with pool:
        async with listening(pool) as worker, open_postgres(dsn) as producer:
            waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
            await producer.job_queue.enqueue_parallel([a_job()])
            assert await woken(waiting) is True
        assert pool.get_size() == pool.get_idle_size()
        async with pool.acquire() as connection:
            assert await connection.fetch("SELECT pg_listening_channels()") == []


async def test_a_small_pool_is_left_alone(dsn: str) -> None:
    async with (
        asyncpg.create_pool(dsn, min_size=0, max_size=2) as pool,
        open_postgres(pool, poll_interval=timedelta(seconds=0.05)) as worker,
    ):
        waiting = asyncio.create_task(worker.job_queue.wait_for_jobs(LONG))
        await script(dsn, SILENT_JOB)
        assert await woken(waiting) is True
        assert worker.listener_state is ListenerState.OFF


async def test_schemas_have_channels_of_their_own(dsn: str) -> None:
    names = [channel_name(name) for name in ("public", "x" * 63, "y" * 63, "größe")]
    assert len(set(names)) == 4
    assert all(len(name.encode()) <= 63 for name in names)
    assert await query(dsn, "SELECT 1") == [(1,)]
