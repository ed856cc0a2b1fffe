"""While an acknowledgement is on its way: what heartbeats see, and who sends for whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from tests.runtime.support import enqueue, until_status, working
from workflow_adapters import Adapters, BackendUnavailableError, Status
from workflow_adapters.ports.adapters import TransactionAdapters
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.runtime import Event, JobContext, Suspend
from workflow_adapters.runtime.acknowledgement import Acknowledger
from workflow_adapters.runtime.leases import HeldLeases
from workflow_adapters.runtime.observation import Observation

pytestmark = pytest.mark.asyncio

LEASE = timedelta(seconds=10)
BEAT = timedelta(seconds=0.02)


class LateAnswers:
    """A bundle whose completions are written at once and answered ten heartbeats later."""

    def __init__(self, adapters: Any) -> None:
        self._adapters = adapters
        self.job_queue = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapters.job_queue, name)

    async def complete_many(self, claims: Any) -> Any:
        outcomes = await self._adapters.job_queue.complete_many(claims)
        await anyio.sleep(10 * BEAT.total_seconds())
        return outcomes

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[TransactionAdapters]:
        async with self._adapters.transaction() as tx:
            yield tx
        await anyio.sleep(10 * BEAT.total_seconds())


async def complete(ctx: JobContext) -> None:
    pass


async def complete_in_transaction(ctx: JobContext) -> None:
    async with ctx.transaction():
        pass


@pytest.mark.parametrize("handler", [complete, complete_in_transaction])
async def test_a_completed_job_is_no_lost_lease(adapters: Adapters, handler: Any) -> None:
    lost: list[DequeueResult] = []
    await enqueue(adapters, "s")
    late: Any = LateAnswers(adapters)
    async with working(late, handler, lease=LEASE, heartbeat_every=BEAT, on_superseded=lost.append) as worker:
        await until_status(adapters, "s", Status.COMPLETED)
        await anyio.sleep(12 * BEAT.total_seconds())
    assert worker.observation.counts[Event.JOB_COMPLETED] == 1
    assert worker.observation.counts[Event.LEASE_LOST] == 0
    assert not lost


async def test_after_a_transaction_that_failed_heartbeats_go_on(adapters: Adapters) -> None:
    failed, beaten = anyio.Event(), anyio.Event()

    class Refusing(LateAnswers):
        async def heartbeat(self, claims: Any) -> Any:
            if failed.is_set():
                beaten.set()
            return await self._adapters.job_queue.heartbeat(claims)

        @asynccontextmanager
        async def transaction(self) -> AsyncGenerator[Any]:
            async with self._adapters.transaction():
                yield SimpleNamespace(job_queue=SimpleNamespace(complete=self._lost))

        async def _lost(self, *claim: object) -> Any:
            raise BackendUnavailableError("the connection was lost")

    async def handler(ctx: JobContext) -> None:
        with pytest.raises(BackendUnavailableError):
            async with ctx.transaction():
                pass
        failed.set()
        await beaten.wait()

    await enqueue(adapters, "s")
    refusing: Any = Refusing(adapters)
    async with working(refusing, handler, lease=LEASE, heartbeat_every=BEAT) as worker:
        await until_status(adapters, "s", Status.COMPLETED)
    assert worker.observation.counts[Event.LEASE_LOST] == 0


class Gate:
    """A queue that answers completions when it is told to, group by group."""

    def __init__(self) -> None:
        self.groups: list[tuple[list[str], anyio.Event]] = []
        self.came = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)

    async def complete_many(self, claims: Sequence[tuple[str, Any]]) -> list[JobAckOutcome]:
        answered = anyio.Event()
        self.groups.append(([job_id for job_id, _ in claims], answered))
        self.came.set()
        await answered.wait()
        return [JobAckOutcome.ACKNOWLEDGED] * len(claims)


@asynccontextmanager
async def acknowledging(adapters: Adapters, number: int) -> AsyncGenerator[tuple[Gate, list[asyncio.Task[bool]]]]:
    """As many completions at once, of which the first is being sent."""
    await enqueue(adapters, *(f"s{place}" for place in range(number)))
    jobs = [await adapters.job_queue.dequeue() for _ in range(number)]
    observation, gate = Observation("worker"), Gate()
    leases = HeldLeases(timedelta(seconds=60), observation, None)
    queue: Any = gate
    acknowledger = Acknowledger(queue, leases, observation)
    held = [leases.hold(job, 1e12) for job in jobs if job is not None]
    tasks = [asyncio.create_task(acknowledger.complete(lease)) for lease in held]
    await gate.came.wait()
    await asyncio.sleep(0.01)
    yield gate, tasks
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_whoever_sent_does_not_go_on_sending_for_others(adapters: Adapters) -> None:
    async with acknowledging(adapters, 4) as (gate, tasks):
        gate.groups[0][1].set()
        await asyncio.wait([tasks[0]], timeout=5)
        assert [task.done() for task in tasks] == [True, False, False, False]
        assert [len(jobs) for jobs, _ in gate.groups] == [1, 3]
        gate.groups[1][1].set()
        assert await asyncio.gather(*tasks) == [True] * 4


async def test_a_turn_is_passed_on_by_who_is_cancelled(adapters: Adapters) -> None:
    async with acknowledging(adapters, 4) as (gate, tasks):
        gate.groups[0][1].set()
        # In this turn of the loop the first one wakes the second, which never gets to run.
        asyncio.get_running_loop().call_soon(tasks[1].cancel)
        await asyncio.wait([tasks[1]], timeout=5)
        await asyncio.sleep(0.01)
        gate.groups[-1][1].set()
        await asyncio.wait(tasks, timeout=5)
        assert all(task.done() for task in tasks)
        assert tasks[1].cancelled()
        assert [tasks[place].result() for place in (0, 2, 3)] == [True] * 3


async def test_a_heartbeat_thread_ends_with_the_worker(adapters: Adapters) -> None:
    opened, closed = threading.Event(), threading.Event()

    class Beating:
        async def heartbeat(self, claims: Any) -> Any:
            return [JobAckOutcome.ACKNOWLEDGED for _ in claims]

        def __getattr__(self, name: str) -> Any:
            raise NotImplementedError(name)

    @asynccontextmanager
    async def open_queue() -> AsyncGenerator[JobQueue]:
        opened.set()
        queue: Any = Beating()
        yield queue
        closed.set()

    async with working(adapters, complete, lease=timedelta(minutes=5), heartbeat_thread=open_queue):
        await asyncio.to_thread(opened.wait, 10)
    assert closed.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "workflow-adapters-heartbeat"]


@pytest.mark.parametrize("answer", [Suspend, "done", False, 0])
async def test_an_answer_that_nobody_understands_fails_the_job(adapters: Adapters, answer: Any) -> None:
    async def handler(ctx: JobContext) -> Any:
        return answer

    await enqueue(
        adapters,
        "s",
    )
    async with working(adapters, handler):
        failed = await until_status(adapters, "s", Status.FAILED)
    assert failed.attempt == 1
    assert failed.last_error is not None
    assert failed.last_error.startswith("the handler returned ")
