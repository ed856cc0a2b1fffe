"""The cap on the RUNNING jobs of a group, and what its claims find."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import asyncpg
import pytest

from tests.postgres_queue.support import a_job, fill, jobs, queue_of
from workflow_adapters import JobQueueFairness, ServedDefinition, TransactionConflictError, UsageError
from workflow_adapters.payloads import dead_reason, group_of, read_payload
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.lanes import DEAD_LANE, LAST_LANE, lane

pytestmark = pytest.mark.asyncio

BY_KEY = JobQueueFairness(max_concurrent_per_group=2)
BY_PATH = JobQueueFairness(max_concurrent_per_group=2, group_by="tenant.id")
SERVES = [ServedDefinition(workflow_id="w", version="v1")]
either_path = pytest.mark.parametrize("fairness", [BY_KEY, BY_PATH], ids=["key", "path"])


def of_group(number: int, group: str, run: str, **values: Any) -> list[Any]:
    return jobs(number, run, group_key=group, payload={"tenant": {"id": group}}, **values)


@either_path
@pytest.mark.parametrize("serves", [None, SERVES], ids=["any", "served"])
async def test_a_full_group_is_left_out_however_much_of_it_stands_at_the_head(
    dsn: str, fairness: JobQueueFairness, serves: list[ServedDefinition] | None
) -> None:
    async with open_postgres(dsn, fairness=fairness) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel(of_group(400, "full", "r1", priority=9))
        await queue.enqueue_parallel(of_group(3, "other", "r2"))
        await queue.enqueue_parallel(of_group(1, "third", "r3", priority=1))
        taken = [await queue.dequeue(serves) for _ in range(7)]
        groups = [job and job.group_key for job in taken]
        assert groups == ["full", "full", "other", "other", "third", None, None]
        # Room that this process makes is found at once.
        for job, following in ((taken[0], "full"), (taken[3], "other")):
            assert job is not None
            await queue.complete(job.job_id, job.fence)
            found = await queue.dequeue(serves)
            assert found is not None
            assert found.group_key == following
        assert await queue.dequeue(serves) is None


@either_path
async def test_a_batch_takes_no_more_than_there_is_room_for(dsn: str, fairness: JobQueueFairness) -> None:
    async with open_postgres(dsn, fairness=fairness) as adapters:
        queue = adapters.job_queue
        for number in range(30):
            await queue.enqueue_parallel(of_group(20, f"g{number:02}", f"r{number}"))
        taken = await queue.dequeue_many(500)
        assert Counter(job.group_key for job in taken) == {f"g{number:02}": 2 for number in range(30)}
        assert await queue.dequeue_many(500) == []


@either_path
async def test_no_more_claims_than_the_cap_while_claims_are_open(dsn: str, fairness: JobQueueFairness) -> None:
    async with open_postgres(dsn, fairness=fairness) as adapters:
        await adapters.job_queue.enqueue_parallel(of_group(5, "g", "r"))
        async with adapters.transaction() as first:
            held = await queue_of(first).dequeue_many(2)
            assert len(held) == 2
            if fairness is BY_KEY and "wa_job_queue" in await _indexes(dsn):
                # The group is claimed from: its turn is taken until that transaction ends.
                assert await adapters.job_queue.dequeue() is None
        assert await adapters.job_queue.dequeue() is None


async def test_an_open_claim_holds_up_its_own_group_only(own: str) -> None:
    async with open_postgres(own, fairness=BY_KEY) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel(of_group(5, "g", "r1", priority=9))
        await queue.enqueue_parallel(of_group(5, "h", "r2"))
        async with adapters.transaction() as tx:
            first = await tx.job_queue.dequeue()
            assert first is not None
            assert first.group_key == "g"
            second = await queue.dequeue()
            assert second is not None
            assert second.group_key == "h"


@either_path
async def test_dead_jobs_of_a_full_group_are_failed(
    dsn: str, raw: asyncpg.Connection, fairness: JobQueueFairness
) -> None:
    async with open_postgres(dsn, fairness=fairness) as adapters:
        queue = adapters.job_queue
        await queue.enqueue_parallel(jobs(4, "r1"))
        assert len(await queue.dequeue_many(4)) == 2
        (dead,) = await queue.enqueue_parallel([a_job("r2")])
        await raw.execute("UPDATE job_queue SET payload = 'null' WHERE id = $1", dead)
        assert await queue.dequeue(SERVES) is None
        assert await raw.fetchval("SELECT status::text FROM job_queue WHERE id = $1", dead) == "FAILED"


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_above_read_committed_a_claim_conflicts_and_does_not_overshoot(own: str, isolation: Any) -> None:
    async with open_postgres(own, fairness=JobQueueFairness(max_concurrent_per_group=1)) as adapters:
        await adapters.job_queue.enqueue_parallel(of_group(3, "g", "r"))
        connection = await asyncpg.connect(own)
        transaction = connection.transaction(isolation=isolation)
        await transaction.start()
        await connection.fetch("SELECT FROM job_queue")
        assert await adapters.job_queue.dequeue() is not None
        try:
            with pytest.raises(TransactionConflictError):
                async with adapters.bind(connection) as tx:
                    await tx.job_queue.dequeue()
        finally:
            await transaction.rollback()
            await connection.close()


async def test_a_turn_by_lock_needs_read_committed(dsn: str) -> None:
    async with open_postgres(dsn, fairness=BY_PATH) as adapters:
        await adapters.job_queue.enqueue_parallel(of_group(3, "g", "r"))
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction(isolation="repeatable_read"), adapters.bind(connection) as tx:
                with pytest.raises(UsageError, match="READ COMMITTED"):
                    await tx.job_queue.dequeue()
                assert await tx.job_queue.get_jobs_by_workflow_run("r")
        finally:
            await connection.close()


PAYLOADS: list[Any] = [
    None,
    [],
    "text",
    7,
    {},
    {"_workflowId": "w"},
    {"_workflowId": ""},
    {"_workflowId": 5},
    {"_workflowId": None},
    {"_workflowId": ["w"]},
    {"_workflowId": "w", "_definitionVersion": "v"},
    {"_workflowId": "w", "_definitionVersion": 3},
    {"_workflowId": "w/v", "_definitionVersion": None},
    {"_workflowId": "ä:ö", "_definitionVersion": "ü"},
    {"_workflowId": "w", "_groupKey": "g"},
    {"_workflowId": "w", "_groupKey": ""},
    {"_workflowId": "w", "_groupKey": 1.5},
    {"_workflowId": "w", "_groupKey": 100000000000000000000000},
    {"_workflowId": "w", "_groupKey": True},
    {"_workflowId": "w", "_groupKey": {"a": 1}},
    {"_workflowId": "w", "_groupKey": "g", "tenant": {"id": "t"}},
    {"_workflowId": "w", "_groupKey": "g", "tenant": {"id": None}},
    {"_workflowId": "w", "_groupKey": "g", "tenant": {"id": 7}},
    {"_workflowId": "w", "_groupKey": "g", "tenant": {"id": [1]}},
    {"_workflowId": "w", "_groupKey": "g", "tenant": [{"id": "t"}]},
    {"_workflowId": "w", "_groupKey": 8, "tenant": "t"},
]


def is_dead(payload: Any) -> bool:
    return dead_reason(payload) is not None


@pytest.mark.parametrize("payload", PAYLOADS, ids=json.dumps)
async def test_lanes_and_groups_are_read_from_the_payload_as_everywhere(
    own: str, raw: asyncpg.Connection, payload: Any
) -> None:
    await fill(raw, 1, "a")
    stored = None if payload is None else json.dumps(payload)
    await raw.execute("UPDATE job_queue SET payload = $1::text::jsonb", stored)
    ((stored_lane, stored_group),) = await raw.fetch("SELECT wa_lane, wa_group FROM job_queue")
    read = read_payload(payload)
    assert stored_lane == (DEAD_LANE if is_dead(payload) else lane(read.workflow_id, read.definition_version))
    assert stored_group == group_of(payload, ("_groupKey",))


@pytest.mark.parametrize("payload", [payload for payload in PAYLOADS if not is_dead(payload)], ids=json.dumps)
async def test_a_cap_of_one_holds_for_the_group_at_a_path(dsn: str, raw: asyncpg.Connection, payload: Any) -> None:
    await fill(raw, 2, "a")
    await raw.execute("UPDATE job_queue SET payload = $1::text::jsonb", json.dumps(payload))
    await fill(raw, 1, "b", group="'elsewhere'", priority="1")
    fairness = JobQueueFairness(max_concurrent_per_group=1, group_by="tenant.id")
    async with open_postgres(dsn, fairness=fairness) as adapters:
        taken = [await adapters.job_queue.dequeue() for _ in range(3)]
    assert [job and job.job_id[0] for job in taken] == ["a", "b", None]


async def test_ids_too_long_for_an_index_can_be_stored(own: str, raw: asyncpg.Connection) -> None:
    await fill(raw, 3, "a")
    for column in ("_workflowId", "_definitionVersion", "_groupKey"):
        await raw.execute(
            """
            UPDATE job_queue
            SET payload = payload || jsonb_build_object(
                $1::text, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) AS n)
            )
            """,
            column,
        )
    assert {row[0] for row in await raw.fetch("SELECT wa_lane FROM job_queue")} == {LAST_LANE}
    async with open_postgres(own, fairness=BY_KEY) as adapters:
        assert len(await adapters.job_queue.dequeue_many(3)) == 2


async def _indexes(dsn: str) -> str:
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch("SELECT indexname FROM pg_indexes WHERE tablename = 'job_queue'")
        return " ".join(row[0] for row in rows)
    finally:
        await connection.close()
