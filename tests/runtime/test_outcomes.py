"""What a handler answers decides what becomes of the job."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.runtime.support import QUICK, UnreadableError, enqueue, job, until, until_noted, until_status, working
from tests.worked_examples.examples import run
from workflow_adapters import (
    Adapters,
    BuiltInAdapters,
    ConfigurationError,
    InvalidValueError,
    JobAckFence,
    OutcomeUnknownError,
    ServedDefinition,
    Status,
)
from workflow_adapters.runtime import Defer, Event, JobContext, Outcome, PermanentJobError, Suspend, Worker

pytestmark = pytest.mark.asyncio
LATER = datetime(2099, 1, 1, tzinfo=UTC)


async def test_a_handler_that_returns_completes_the_job(adapters: Adapters) -> None:
    seen: list[str] = []

    async def handler(ctx: JobContext) -> None:
        seen.append(ctx.job.stage_id)

    stages = [f"s{n}" for n in range(25)]
    await enqueue(adapters, *stages)
    async with working(adapters, handler, concurrency=4):
        for stage in stages:
            await until_status(adapters, stage, Status.COMPLETED)
    assert sorted(seen) == sorted(stages)


async def test_suspend_and_defer(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> Outcome:
        if ctx.job.stage_id == "suspends":
            return Suspend(next_poll_at=LATER)
        return Defer(next_poll_at=LATER, reason="not yet")

    await enqueue(adapters, "suspends", "defers")
    async with working(adapters, handler) as worker:
        suspended = await until_status(adapters, "suspends", Status.SUSPENDED)
        await until_noted(worker, Event.JOB_DEFERRED)
    deferred = await job(adapters, "defers")
    assert suspended.next_poll_at == LATER
    assert (deferred.status, deferred.attempt, deferred.last_error) == (Status.PENDING, 0, "not yet")


async def test_an_exception_fails_with_retry_and_a_permanent_one_for_good(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        if ctx.job.stage_id == "permanent":
            raise PermanentJobError("never")
        raise ValueError("again")

    await enqueue(adapters, "permanent", "retried")
    async with working(adapters, handler) as worker:
        failed = await until_status(adapters, "permanent", Status.FAILED)
        await until_noted(worker, Event.JOB_RETRIED)
    retried = await job(adapters, "retried")
    assert (failed.attempt, failed.last_error) == (1, "PermanentJobError: never")
    assert (retried.status, retried.attempt, retried.last_error) == (Status.PENDING, 1, "ValueError: again")


async def test_a_handler_that_cancels_itself_has_failed(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        raise asyncio.CancelledError

    await enqueue(adapters, "s")
    async with working(adapters, handler) as worker:
        await until_noted(worker, Event.JOB_RETRIED)
    assert "cancellation" in str((await job(adapters, "s")).last_error)


async def test_a_group_with_a_cancellation_in_it_is_a_failure(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        raise BaseExceptionGroup("both", [ValueError("broken"), asyncio.CancelledError()])

    await enqueue(adapters, "s")
    async with working(adapters, handler) as worker:
        await until_noted(worker, Event.JOB_RETRIED)
        assert worker.working
    assert "cancellation" in str((await job(adapters, "s")).last_error)


async def test_an_error_that_can_not_be_read_is_recorded_all_the_same(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        raise UnreadableError

    await enqueue(adapters, "s")
    async with working(adapters, handler) as worker:
        await until_noted(worker, Event.JOB_RETRIED)
    assert str((await job(adapters, "s")).last_error).startswith("UnreadableError: its message can not be read")


async def test_an_attempt_that_takes_too_long_is_cancelled_and_retried(adapters: Adapters) -> None:
    cancelled: list[bool] = []

    async def handler(ctx: JobContext) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    await enqueue(adapters, "s")
    async with working(adapters, handler, job_timeout=timedelta(milliseconds=50)) as worker:
        await until_noted(worker, Event.JOB_RETRIED)
    assert cancelled == [True]
    assert "time limit" in str((await job(adapters, "s")).last_error)


async def test_a_transaction_commits_the_handlers_writes_with_the_completion(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        async with ctx.transaction() as tx:
            await tx.persistence.create_run(run("made"))
            await enqueue(tx, "next")

    await enqueue(adapters, "s", priority=9)
    async with working(adapters, handler):
        await until_status(adapters, "s", Status.COMPLETED)
    assert await adapters.persistence.get_run("made") is not None
    assert (await job(adapters, "next")).stage_id == "next"


async def test_a_superseded_fence_rolls_the_handlers_writes_back(adapters: Adapters) -> None:
    superseded: list[str] = []

    async def handler(ctx: JobContext) -> None:
        if ctx.job.attempt > 1:
            return
        await adapters.job_queue.release_stale_jobs(timedelta(seconds=-1))
        async with ctx.transaction() as tx:
            await tx.persistence.create_run(run("made"))

    await enqueue(adapters, "s")
    async with working(adapters, handler, on_superseded=lambda lost: superseded.append(lost.stage_id)):
        await until_status(adapters, "s", Status.COMPLETED)
    assert await adapters.persistence.get_run("made") is None
    assert superseded == ["s"]
    assert (await job(adapters, "s")).attempt == 2


async def test_a_failing_block_leaves_the_job_to_the_next_attempt(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        async with ctx.transaction() as tx:
            await tx.persistence.create_run(run("made"))
            raise ValueError("no")

    await enqueue(adapters, "s")
    async with working(adapters, handler) as worker:
        await until_noted(worker, Event.JOB_RETRIED)
    assert await adapters.persistence.get_run("made") is None


async def test_without_adapters_a_transaction_is_a_configuration_error(adapters: Adapters) -> None:
    async def handler(ctx: JobContext) -> None:
        with pytest.raises(ConfigurationError, match="adapters=adapters"):
            async with ctx.transaction():
                raise AssertionError

    await enqueue(adapters, "s")
    worker = Worker(adapters.job_queue, handler, **QUICK)
    task = asyncio.create_task(worker.run())
    await until_status(adapters, "s", Status.COMPLETED)
    worker.stop()
    await task


async def test_a_job_that_is_not_served_is_never_run(adapters: BuiltInAdapters) -> None:
    class Ignorant:
        """A queue that takes no notice of `serves`."""

        def __getattr__(self, name: str) -> object:
            return getattr(adapters.job_queue, name)

        async def dequeue(self, serves: object = None) -> object:
            return await adapters.job_queue.dequeue()

        async def dequeue_many(self, limit: int, serves: object = None) -> object:
            return await adapters.job_queue.dequeue_many(limit)

    async def handler(ctx: JobContext) -> None:
        raise AssertionError("run although not served")

    await enqueue(adapters, "s", definition_version="v2")
    served = [ServedDefinition(workflow_id="w", version="v1")]
    worker = Worker(Ignorant(), handler, serves=served, **QUICK)  # type: ignore[arg-type]  # it stands in for a queue
    task = asyncio.create_task(worker.run())
    await until_noted(worker, Event.JOB_NOT_SERVED)
    worker.stop()
    await task
    found = await job(adapters, "s")
    assert (found.status, found.attempt) == (Status.PENDING, 0)
    assert found.last_error == "this worker does not serve workflow w version v2"


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"lease": timedelta(0)}, "lease"),
        ({"lease": 5}, "lease"),
        ({"serves": "some"}, "serves"),
        ({"heartbeat_every": timedelta(minutes=2)}, "heartbeat_every"),
    ],
)
async def test_bad_settings_are_refused(adapters: Adapters, settings: dict[str, Any], path: str) -> None:
    async def handler(ctx: JobContext) -> None:
        return None

    with pytest.raises(InvalidValueError) as caught:
        Worker(adapters.job_queue, handler, **settings)
    assert caught.value.path == path


async def test_completions_of_many_jobs_share_statements(adapters: BuiltInAdapters) -> None:
    async def handler(ctx: JobContext) -> None:
        return None

    calls: list[int] = []
    complete_many = adapters.job_queue.complete_many

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(adapters.job_queue, name)

        async def complete_many(self, claims: list[tuple[str, JobAckFence]]) -> object:
            calls.append(len(claims))
            return await complete_many(claims)

    await enqueue(adapters, *[f"s{n}" for n in range(100)])
    worker = Worker(Counting(), handler, concurrency=50, **QUICK)  # type: ignore[arg-type]  # it stands in for a queue
    task = asyncio.create_task(worker.run())

    async def all_done() -> bool:
        return worker.observation.counts[Event.JOB_COMPLETED] == 100

    await until(all_done)
    worker.stop()
    await task
    assert sum(calls) == 100
    assert len(calls) < 50


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "rolled back"])
async def test_a_commit_that_was_interrupted_is_looked_up(adapters: Adapters, committed: bool) -> None:
    class Interrupted:
        """Its first transaction is interrupted at the commit, which has happened or has not."""

        left = 1

        def __getattr__(self, name: str) -> object:
            return getattr(adapters, name)

        @asynccontextmanager
        async def transaction(self) -> AsyncGenerator[object]:
            self.left -= 1
            with contextlib.suppress(ArithmeticError):
                async with adapters.transaction() as tx:
                    yield tx
                    if self.left == 0 and not committed:
                        raise ArithmeticError
            if self.left == 0:
                raise OutcomeUnknownError("the connection was lost")

    attempts: list[int] = []

    async def handler(ctx: JobContext) -> None:
        attempts.append(ctx.job.attempt)
        async with ctx.transaction():
            pass

    await enqueue(adapters, "s")
    async with working(Interrupted(), handler) as worker:
        await until_noted(worker, Event.JOB_COMPLETED if committed else Event.JOB_RETRIED)
    found = await job(adapters, "s")
    assert attempts == [1]
    assert worker.observation.counts[Event.ACK_SUPERSEDED] == 0
    assert found.status is (Status.COMPLETED if committed else Status.PENDING)
