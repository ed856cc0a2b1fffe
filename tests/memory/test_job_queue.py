"""Rules of the queue that are easy to get wrong: fences, order, dead jobs, caps, sweeps at their limits, waiting."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.memory.inputs import START, job
from workflow_adapters import (
    Adapters,
    DequeueResult,
    InvalidValueError,
    JobAckOutcome,
    JobQueueFairness,
    ManualClock,
    NotFoundError,
    RetryBackoff,
    ServedDefinition,
    Status,
    open_memory,
)
from workflow_adapters.memory import MemoryStore

pytestmark = pytest.mark.anyio

SECOND = timedelta(seconds=1)


def queue_of(adapters: Adapters) -> Any:
    """The queue with its capabilities, which the port's type does not have."""
    return adapters.job_queue


async def claimed(adapters: Adapters, **options: Any) -> DequeueResult:
    result = await adapters.job_queue.dequeue(**options)
    assert result is not None
    return result


async def store_payload(store: MemoryStore, job_id: str, payload: Any) -> None:
    """What no port writes but a foreign writer may."""
    async with store.writing(SECOND) as tables:
        row = tables.jobs.get(job_id)
        assert row is not None
        tables.jobs.put(replace(row, payload=payload))


async def test_fences_increase_within_one_millisecond_whatever_gave_the_job_back() -> None:
    async with open_memory(clock=ManualClock()) as adapters:
        queue = queue_of(adapters)
        await queue.enqueue_parallel([job()])
        fences: list[Any] = []
        for give_back in ("defer", "fail", "release", "suspend and requeue"):
            taken = await claimed(adapters)
            fences.append(taken.fence)
            if give_back == "defer":
                await queue.defer(taken.job_id, START, "later", taken.fence)
            elif give_back == "fail":
                await queue.fail(taken.job_id, "e", fence=taken.fence)
                await adapters.operations.requeue_job(taken.job_id)
            elif give_back == "release":
                await queue.release_stale_jobs(-SECOND)
        starts = [fence.started_at for fence in fences]
        assert starts == [START + timedelta(milliseconds=n) for n in range(4)]
        for fence in fences[:-1]:
            assert await queue.complete(taken.job_id, fence) is JobAckOutcome.SUPERSEDED
        assert await queue.heartbeat([(taken.job_id, fence) for fence in fences]) == [
            *[JobAckOutcome.SUPERSEDED] * 3,
            JobAckOutcome.ACKNOWLEDGED,
        ]


async def test_a_fence_holds_only_while_its_claim_runs() -> None:
    async with open_memory() as adapters:
        queue = queue_of(adapters)
        await queue.enqueue_parallel([job()])
        taken = await claimed(adapters)
        assert await queue.complete(taken.job_id, taken.fence) is JobAckOutcome.ACKNOWLEDGED
        for outcome in (
            await queue.complete(taken.job_id, taken.fence),
            await queue.fail(taken.job_id, "e", True, taken.fence),
            await queue.defer(taken.job_id, START, "r", taken.fence),
            await queue.suspend(taken.job_id, START, taken.fence),
            *await queue.complete_many([(taken.job_id, taken.fence)]),
        ):
            assert outcome is JobAckOutcome.SUPERSEDED
        # Enqueued anew the pair has another id: the old claim finds nothing.
        await queue.enqueue_parallel([job()])
        assert await queue.complete(taken.job_id, taken.fence) is JobAckOutcome.SUPERSEDED
        with pytest.raises(NotFoundError):
            await queue.complete(taken.job_id)


async def test_jobs_stand_in_the_order_of_the_inputs_that_survive() -> None:
    async with open_memory(clock=ManualClock()) as adapters:
        ids = await adapters.job_queue.enqueue_parallel(
            [job("a"), job("b"), job("a", priority=5), job("c", priority=9)]
        )
        assert ids[0] == ids[2]
        order = [await claimed(adapters) for _ in range(3)]
        assert [taken.stage_id for taken in order] == ["c", "b", "a"]


@pytest.mark.parametrize("payload", [None, [1], "text", {}, {"_workflowId": 7}, {"_workflowId": None}])
async def test_a_dead_job_is_failed_on_the_way_by_whoever_serves_anything(payload: Any) -> None:
    store = MemoryStore()
    async with open_memory(store=store) as adapters:
        dead, _ = await adapters.job_queue.enqueue_parallel([job("dead", priority=9), job("live")])
        await store_payload(store, dead, payload)
        assert await adapters.job_queue.dequeue([]) is None
        shown = await adapters.operations.get_job(dead)
        assert shown is not None
        assert (shown.status, shown.payload, shown.workflow_id) == (Status.PENDING, {}, "")
        taken = await claimed(adapters, serves=[ServedDefinition(workflow_id="w", version="1")])
        assert taken.stage_id == "live"
        failed = await adapters.operations.get_job(dead)
        assert failed is not None
        assert (failed.status, failed.attempt) == (Status.FAILED, 0)
        assert str(failed.last_error).startswith("dead job")


async def test_the_cap_holds_for_claims_in_batches_and_in_a_race_of_two_bundles() -> None:
    store, fairness = MemoryStore(), JobQueueFairness(max_concurrent_per_group=2)
    async with open_memory(store=store, fairness=fairness) as one, open_memory(store=store, fairness=fairness) as two:
        await one.job_queue.enqueue_parallel([job(f"s{n}", group_key=f"g{n % 3}") for n in range(30)])
        assert len(await queue_of(one).dequeue_many(4)) == 4
        taken: list[DequeueResult] = []

        async def take(adapters: Adapters) -> None:
            while (result := await adapters.job_queue.dequeue()) is not None:
                taken.append(result)

        async with anyio.create_task_group() as tasks:
            for adapters in (one, two) * 3:
                tasks.start_soon(take, adapters)
        running = [row for row in store.committed.jobs if row.status is Status.RUNNING]
        assert Counter(str(row.payload["_groupKey"]) for row in running if isinstance(row.payload, dict)) == {
            "g0": 2,
            "g1": 2,
            "g2": 2,
        }
        await one.job_queue.complete(taken[0].job_id, taken[0].fence)
        assert (await claimed(two)).group_key == taken[0].group_key


async def test_a_group_is_the_text_at_its_path_or_at_the_group_key_or_empty() -> None:
    fairness = JobQueueFairness(max_concurrent_per_group=1, group_by="tenant.id")
    async with open_memory(fairness=fairness) as adapters:
        assert queue_of(adapters).fairness_group_by == "tenant.id"
        await adapters.job_queue.enqueue_parallel(
            [
                job("text", payload={"tenant": {"id": "1"}}),
                job("number", payload={"tenant": {"id": 1}}),
                job("fallback", payload={"tenant": {"id": None}}, group_key="1"),
                job("object", payload={"tenant": {"id": {}}}),
                job("absent"),
            ]
        )
        assert [taken.stage_id for taken in await queue_of(adapters).dequeue_many(9)] == ["text", "object"]


async def test_the_sweeps_take_any_span() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        queue = queue_of(adapters)
        await queue.enqueue_parallel([job()])
        taken = await claimed(adapters)
        for span in (timedelta.max, timedelta(0), SECOND):
            assert await queue.release_stale_jobs(span) == 0
            assert await queue.expire_runaway_jobs(span) == 0
        clock.advance(timedelta(milliseconds=1))
        assert await queue.release_stale_jobs(timedelta(0)) == 1
        assert (await claimed(adapters)).attempt == taken.attempt + 1
        assert await queue.release_stale_jobs(timedelta.min) == 1
        assert (await claimed(adapters)).attempt == 3
        assert await queue.release_stale_jobs(timedelta.min, fail_spent=True) == 1
        spent = await adapters.operations.get_job(taken.job_id)
        assert spent is not None
        assert (spent.status, str(spent.last_error).split(":")[0]) == (Status.FAILED, "LEASE_HEARTBEAT_LOST")
        await adapters.operations.requeue_job(taken.job_id)
        await claimed(adapters)
        assert await queue.expire_runaway_jobs(timedelta.min) == 1


async def test_a_backoff_beyond_the_calendar_ends_with_it() -> None:
    backoff = RetryBackoff(base=timedelta(days=9_999_999), cap=timedelta.max)
    async with open_memory(backoff=backoff) as adapters:
        await adapters.job_queue.enqueue_parallel([job()])
        taken = await claimed(adapters)
        await adapters.job_queue.fail(taken.job_id, "e", should_retry=True)
        stored = await adapters.operations.get_job(taken.job_id)
        assert stored is not None
        assert stored.next_poll_at is not None
        assert stored.next_poll_at.year == 9999


async def test_the_worker_id_is_adopted_unless_one_was_configured() -> None:
    async with open_memory(worker_id="mine") as configured, open_memory() as adapters:
        assert queue_of(configured).adopt_worker_id("host") == "mine"
        async with adapters.transaction() as tx:
            assert queue_of(adapters).adopt_worker_id("host") == "host"
            await tx.job_queue.enqueue_parallel([job()])
            await tx.job_queue.dequeue()
        (stored,) = await adapters.job_queue.get_jobs_by_workflow_run("r")
        assert stored.worker_id == "host"
        with pytest.raises(InvalidValueError, match="worker_id"):
            queue_of(adapters).adopt_worker_id("")


async def test_waiting_ends_at_once_when_a_job_is_due_and_at_the_timeout_when_none_is() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        queue = queue_of(adapters)
        assert not await queue.wait_for_jobs(timedelta(0))
        await queue.enqueue_parallel([job("later", scheduled_for=START + SECOND)])
        assert not await queue.wait_for_jobs(timedelta(milliseconds=10))
        clock.advance(SECOND)
        assert await queue.wait_for_jobs(timedelta(0))


@pytest.mark.parametrize("wake", ["enqueue", "release", "commit", "clock", "other bundle"])
async def test_waiting_ends_when_a_job_comes_due(wake: str) -> None:
    clock, store = ManualClock(), MemoryStore()
    async with open_memory(clock=clock, store=store) as adapters, open_memory(clock=clock, store=store) as other:
        queue = queue_of(adapters)
        await queue.enqueue_parallel([job("later", scheduled_for=START + SECOND), job("running")])
        await claimed(adapters)
        woken: list[bool] = []

        async def wait() -> None:
            woken.append(await queue.wait_for_jobs(timedelta(minutes=1)))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                for _ in range(5):
                    await checkpoint()
                assert woken == []
                if wake == "enqueue":
                    await queue.enqueue_parallel([job()])
                elif wake == "release":
                    await queue.release_stale_jobs(-SECOND)
                elif wake == "commit":
                    async with adapters.transaction() as tx:
                        await tx.job_queue.enqueue_parallel([job()])
                        assert woken == []
                elif wake == "clock":
                    clock.advance(SECOND)
                else:
                    await other.job_queue.enqueue_parallel([job()])
        assert woken == [True]


async def test_a_job_of_a_full_group_wakes_nobody() -> None:
    async with open_memory(fairness=JobQueueFairness(max_concurrent_per_group=1)) as adapters:
        await adapters.job_queue.enqueue_parallel([job("a"), job("b")])
        await claimed(adapters)
        assert not await queue_of(adapters).wait_for_jobs(timedelta(milliseconds=10))
