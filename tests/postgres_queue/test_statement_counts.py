"""One statement for each operation on a schema of ours, with no BEGIN and COMMIT around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pytest

from tests.postgres_queue.counting import CountingConnection, taken_down
from tests.postgres_queue.support import a_job, jobs
from workflow_adapters import CreateOutboxEventInput, JobQueueFairness, ServedDefinition
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.records.job_queue import DequeueResult

pytestmark = pytest.mark.asyncio

Call: TypeAlias = "Callable[[PostgresAdapters, list[DequeueResult]], Awaitable[object]]"

NOW = datetime.now(UTC)
SERVES = [ServedDefinition(workflow_id="w", version="v1"), ServedDefinition(workflow_id="x", version="v1")]
EVENT = CreateOutboxEventInput(
    workflow_run_id="r", event_type="t", payload={}, causation_id="c", occurred_at=datetime(2026, 1, 1, tzinfo=UTC)
)

CALLS: dict[str, Call] = {
    "enqueue_parallel": lambda it, _: it.job_queue.enqueue_parallel(jobs(100, "other")),
    "enqueue_parallel_again": lambda it, _: it.job_queue.enqueue_parallel(jobs(20)),
    "dequeue": lambda it, _: it.job_queue.dequeue(),
    "dequeue_served": lambda it, _: it.job_queue.dequeue(SERVES),
    "dequeue_nothing": lambda it, _: it.job_queue.dequeue([ServedDefinition(workflow_id="none", version="v1")]),
    "dequeue_many": lambda it, _: it.job_queue.dequeue_many(5),
    "complete": lambda it, held: it.job_queue.complete(held[0].job_id, held[0].fence),
    "suspend": lambda it, held: it.job_queue.suspend(held[0].job_id, NOW, held[0].fence),
    "fail": lambda it, held: it.job_queue.fail(held[0].job_id, "why", True, held[0].fence),
    "defer": lambda it, held: it.job_queue.defer(held[0].job_id, NOW, "why", held[0].fence),
    "unfenced": lambda it, held: it.job_queue.complete(held[0].job_id),
    "touch_job": lambda it, held: it.job_queue.touch_job(held[0].job_id),
    "complete_many": lambda it, held: it.job_queue.complete_many([(job.job_id, job.fence) for job in held]),
    "heartbeat": lambda it, held: it.job_queue.heartbeat([(job.job_id, job.fence) for job in held]),
    "cancel_by_run": lambda it, _: it.job_queue.cancel_by_run("r"),
    "delete_by_run_and_stages": lambda it, _: it.job_queue.delete_by_run_and_stages("r", ["s00001"]),
    "release_stale_jobs": lambda it, _: it.job_queue.release_stale_jobs(timedelta(seconds=-9)),
    "expire_runaway_jobs": lambda it, _: it.job_queue.expire_runaway_jobs(timedelta(seconds=-9)),
    "append_outbox_events": lambda it, _: it.persistence.append_outbox_events([EVENT] * 3),
    "claim_unpublished_outbox_events": lambda it, _: it.persistence.claim_unpublished_outbox_events(),
    "lease_outbox_events": lambda it, _: it.persistence.lease_outbox_events(),
}


@pytest.mark.parametrize("fairness", [None, JobQueueFairness(max_concurrent_per_group=50)], ids=["unfair", "fair"])
@pytest.mark.parametrize("name", CALLS)
async def test_one_statement(own: str, name: str, fairness: JobQueueFairness | None) -> None:
    connect = {"connection_class": CountingConnection}
    async with open_postgres(own, fairness=fairness, wake_ups=False, connect=connect) as adapters:
        await adapters.job_queue.enqueue_parallel(jobs(20))
        await adapters.persistence.append_outbox_events([EVENT])
        held = await adapters.job_queue.dequeue_many(3)
        taken_down()
        await CALLS[name](adapters, held)
        said = taken_down()
    assert len(said) == 1, said


@pytest.mark.parametrize("fairness", [None, JobQueueFairness(max_concurrent_per_group=50)], ids=["unfair", "fair"])
async def test_an_empty_queue_takes_one_statement_too(own: str, fairness: JobQueueFairness | None) -> None:
    connect = {"connection_class": CountingConnection}
    async with open_postgres(own, fairness=fairness, wake_ups=False, connect=connect) as adapters:
        await adapters.job_queue.enqueue_parallel([a_job(scheduled_for=datetime(2999, 1, 1, tzinfo=UTC))])
        taken_down()
        assert await adapters.job_queue.dequeue() is None
        assert len(taken_down()) == 1
