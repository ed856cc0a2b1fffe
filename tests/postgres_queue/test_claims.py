"""Claims that meet one another, on a schema of ours and on the bare reference."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from tests.postgres.support import until
from tests.postgres_queue.support import a_job, deadlocks, fill, jobs, queue_of
from workflow_adapters import BackendError, ServedDefinition, Status
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.job_queue import PostgresJobQueue
from workflow_adapters.records.job_queue import DequeueResult

pytestmark = pytest.mark.asyncio

# Of this database: other tests run on the same server.
WAITING = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
SERVES = [ServedDefinition(workflow_id="w", version="v1")]


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("serves", [None, SERVES], ids=["any", "served"])
async def test_every_job_is_claimed_once(dsn: str, serves: list[ServedDefinition] | None, batch: int) -> None:
    claimed: list[str] = []
    async with open_postgres(dsn) as here, open_postgres(dsn) as there:
        await here.job_queue.enqueue_parallel(jobs(300))

        async def work(queue: PostgresJobQueue) -> None:
            while taken := await queue.dequeue_many(batch, serves):
                claimed.extend(job.job_id for job in taken)

        await asyncio.gather(*(work(bundle.job_queue) for bundle in (here, there) for _ in range(5)))
    assert len(claimed) == 300
    assert set(Counter(claimed).values()) == {1}


async def test_a_batch_may_be_larger_than_one_statement_takes(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        await adapters.job_queue.enqueue_parallel(jobs(600))
        taken = await adapters.job_queue.dequeue_many(1000)
        assert [job.stage_id for job in sorted(taken, key=lambda job: job.job_id)] == [f"s{n:05}" for n in range(600)]
        assert await adapters.job_queue.dequeue_many(1000) == []


async def test_claims_that_are_still_open_are_passed_by(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        await adapters.job_queue.enqueue_parallel(jobs(60))
        async with adapters.transaction() as tx:
            # More than a claim looks at first.
            held = await queue_of(tx).dequeue_many(50)
            assert len(held) == 50
            next_one = await adapters.job_queue.dequeue()
            assert next_one is not None
            assert next_one.job_id not in {job.job_id for job in held}
            assert len(await adapters.job_queue.dequeue_many(100)) == 9
            assert await adapters.job_queue.dequeue() is None
        assert await adapters.job_queue.dequeue() is None


async def test_a_claim_that_was_rolled_back_can_be_made_again(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        await adapters.job_queue.enqueue_parallel(jobs(1))
        with suppress(ZeroDivisionError):
            async with adapters.transaction() as tx:
                assert await tx.job_queue.dequeue() is not None
                raise ZeroDivisionError
        job = await adapters.job_queue.dequeue()
        assert job is not None
        assert job.attempt == 1


async def test_the_order_is_exact_with_dates_and_without(own: str) -> None:
    now = datetime.now(UTC)
    dice = random.Random(7)
    inputs = [
        a_job(
            stage=f"s{position}",
            priority=dice.randrange(4),
            scheduled_for=None if dice.random() < 0.5 else now - timedelta(seconds=dice.randrange(1, 1000)),
        )
        for position in range(200)
    ]
    async with open_postgres(own) as adapters:
        for start in range(0, 200, 20):
            await adapters.job_queue.enqueue_parallel(inputs[start : start + 20])
        expected = [job.stage_id for job in sorted(inputs, key=lambda job: -job.priority)]
        singles = [await adapters.job_queue.dequeue() for _ in range(40)]
        many = await adapters.job_queue.dequeue_many(200)
    assert [job.stage_id for job in [*singles, *many] if job is not None] == expected


@pytest.mark.parametrize("serves", [None, SERVES], ids=["any", "served"])
async def test_what_is_due_is_found_behind_what_is_not(
    dsn: str, raw: asyncpg.Connection, serves: list[ServedDefinition] | None
) -> None:
    await fill(raw, 500, "later", priority="9", due_at="timestamp '2999-01-01'")
    await fill(raw, 1, "due", due_at="timestamp '2024-01-01'")
    await fill(raw, 1, "ready", priority="4")
    async with open_postgres(dsn) as adapters:
        taken = [await adapters.job_queue.dequeue(serves) for _ in range(3)]
    assert [job and job.job_id for job in taken] == ["due000000001", "ready000000001", None]


async def test_dead_jobs_are_failed_on_the_way(dsn: str, raw: asyncpg.Connection) -> None:
    async with open_postgres(dsn) as adapters:
        ids = await adapters.job_queue.enqueue_parallel(jobs(60))
        await raw.execute("UPDATE job_queue SET payload = 'null' WHERE id = ANY ($1)", ids[:50])
        await raw.execute("UPDATE job_queue SET payload = NULL WHERE id = $1", ids[50])
        taken = await adapters.job_queue.dequeue_many(20, SERVES)
        stored = await adapters.job_queue.get_jobs_by_workflow_run("r")
    assert sorted(job.job_id for job in taken) == ids[51:]
    failed = [job for job in stored if job.status is Status.FAILED]
    assert sorted(job.id for job in failed) == ids[:51]
    assert {(job.last_error, job.attempt, job.worker_id) for job in failed} == {("dead job: payload is null", 0, None)}


async def test_a_job_that_python_can_not_read_is_dead_and_costs_no_other(dsn: str, raw: asyncpg.Connection) -> None:
    """Postgres takes deeper nesting, and longer numbers, than Python reads."""
    async with open_postgres(dsn) as adapters:
        ids = await adapters.job_queue.enqueue_parallel(jobs(6))
        deep, long = "(repeat('[', 3000) || repeat(']', 3000))::jsonb", "to_jsonb('1e5000'::numeric)"
        for id, value in ((ids[1], deep), (ids[3], long)):
            await raw.execute(
                f"UPDATE job_queue SET payload = payload || jsonb_build_object('x', {value}) WHERE id = $1", id
            )
        taken = await adapters.job_queue.dequeue_many(10)
        assert [job.job_id for job in taken] == [ids[0], ids[2], ids[4], ids[5]]
        failed = await raw.fetch("SELECT id, \"lastError\" FROM job_queue WHERE status = 'FAILED' ORDER BY id")
        assert [row[0] for row in failed] == [ids[1], ids[3]]
        assert all(row[1].startswith("dead job: stored JSON can not be read") for row in failed)
        with pytest.raises(BackendError, match=ids[1]):
            await adapters.operations.get_job(ids[1])


async def test_batches_that_were_cancelled_half_way_are_given_back(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_postgres(own) as adapters:
        await adapters.job_queue.enqueue_parallel(jobs(400))
        queue = adapters.job_queue
        claim_some, calls = queue._claim_some, 0

        async def second_time_cancelled(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise asyncio.CancelledError
            return await claim_some(*arguments)

        monkeypatch.setattr(queue, "_claim_some", second_time_cancelled)
        with pytest.raises(asyncio.CancelledError):
            await queue.dequeue_many(400)
        assert calls == 2
        stored = await queue.get_jobs_by_workflow_run("r")
    assert {(job.status, job.attempt, job.worker_id, job.locked_at) for job in stored} == {
        (Status.PENDING, 0, None, None)
    }


async def test_pairs_enqueued_by_many_in_any_order(dsn: str) -> None:
    inputs = [a_job(f"run{run}", f"s{stage}") for run in range(5) for stage in range(10)]
    async with open_postgres(dsn) as adapters:

        async def enqueue() -> list[str]:
            return await adapters.job_queue.enqueue_parallel(random.sample(inputs, len(inputs)))

        await asyncio.gather(*(enqueue() for _ in range(20)))
        stored = [await adapters.job_queue.get_jobs_by_workflow_run(f"run{run}") for run in range(5)]
    assert [len(found) for found in stored] == [10] * 5
    assert await deadlocks(dsn) == 0


async def test_enqueueing_cancelling_and_deleting_at_once(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        queue = adapters.job_queue
        inputs = jobs(20)
        stages = [job.stage_id for job in inputs]

        async def some_of_each(number: int) -> None:
            for _ in range(10):
                match number % 3:
                    case 0:
                        await queue.enqueue_parallel(random.sample(inputs, 20))
                    case 1:
                        await queue.cancel_by_run("r")
                    case _:
                        await queue.delete_by_run_and_stages("r", random.sample(stages, 20))

        await asyncio.gather(*(some_of_each(number) for number in range(9)))
        await queue.enqueue_parallel(inputs)
        assert await queue.delete_by_run_and_stages("r", stages) == 20
    assert await deadlocks(dsn) == 0


@pytest.mark.parametrize("end", ["cancel", "delete"])
async def test_a_job_replaced_meanwhile_is_cancelled_or_deleted_all_the_same(
    dsn: str, raw: asyncpg.Connection, end: str
) -> None:
    async with open_postgres(dsn) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel([a_job()])
        async with adapters.transaction() as tx:
            await tx.job_queue.enqueue_parallel([a_job()])
            work = queue.cancel_by_run("r") if end == "cancel" else queue.delete_by_run_and_stages("r", ["s"])
            waiting = asyncio.create_task(work)
            await until(lambda: raw.fetch(WAITING))
        assert await waiting == 1
        stored = await queue.get_jobs_by_workflow_run("r")
    assert [job.status for job in stored] == ([Status.CANCELLED] if end == "cancel" else [])


async def test_batches_of_the_same_claims_wait_for_one_another_in_one_order(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel(jobs(60))
        claims = [(job.job_id, job.fence) for job in await queue.dequeue_many(60)]

        async def beat() -> None:
            for _ in range(20):
                await queue.heartbeat(random.sample(claims, 60))

        await asyncio.gather(*(beat() for _ in range(6)))
        outcomes = await asyncio.gather(*(queue.complete_many(random.sample(claims, 60)) for _ in range(4)))
    assert sum(outcome == "acknowledged" for answer in outcomes for outcome in answer) == 60
    assert await deadlocks(dsn) == 0


async def test_a_sweep_neither_waits_for_an_acknowledgement_in_flight_nor_undoes_it(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel(jobs(3))
        held = await queue.dequeue_many(3)
        async with adapters.transaction() as tx:
            await tx.job_queue.complete(held[0].job_id, held[0].fence)
            async with asyncio.timeout(5):
                assert await queue.release_stale_jobs(timedelta(seconds=-60)) == 2
                assert await queue.expire_runaway_jobs(timedelta(seconds=-60)) == 0
        stored = {job.id: job.status for job in await queue.get_jobs_by_workflow_run("r")}
    assert stored[held[0].job_id] is Status.COMPLETED
    assert Counter(stored.values()) == {Status.COMPLETED: 1, Status.PENDING: 2}


async def test_fences_rise_within_one_millisecond(dsn: str) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    async with open_postgres(dsn) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel(jobs(1))
        starts: list[datetime] = []
        for _ in range(20):
            job: DequeueResult | None = await queue.dequeue()
            assert job is not None
            starts.append(job.started_at)
            await queue.defer(job.job_id, long_ago, "not yet", job.fence)
    assert all(earlier < later for earlier, later in pairwise(starts))
