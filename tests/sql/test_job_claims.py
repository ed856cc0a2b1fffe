"""Which job a claim on SQLite takes, held against the rule written in Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.sql.sqlite_database import PlainDatabase
from tests.worked_examples.examples import START, job
from workflow_adapters import JobQueueFairness, JsonValue, ManualClock, ServedDefinition, Status
from workflow_adapters.errors import ConfigurationError
from workflow_adapters.payloads import dead_reason, group_of, is_served, read_payload
from workflow_adapters.sqlite.job_claims import FEW, lanes_of
from workflow_adapters.sqlite.job_fairness import FairChoice

pytestmark = pytest.mark.asyncio

Build = Callable[..., Any]

SERVES = [
    None,
    [ServedDefinition(workflow_id="w", version="1")],
    [ServedDefinition(workflow_id="w", version="2"), ServedDefinition(workflow_id="x", version="1")],
]
FAIRNESS = [
    None,
    JobQueueFairness(max_concurrent_per_group=2),
    JobQueueFairness(max_concurrent_per_group=1, group_by="tenant.id"),
]
TENANTS: list[Any] = ["a", "b", 1, 1.0, True, None, [1], 12345678901234567890, 12345678901234567891, "", "1"]


def random_payload(pick: random.Random) -> Any:
    if pick.random() < 0.05:
        return pick.choice([None, "null", "[1]", '{"_workflowId": 7}', '"text"'])
    payload: dict[str, Any] = {"_workflowId": pick.choice(["w", "w", "x", "wé"])}
    if pick.random() < 0.5:
        payload["_definitionVersion"] = pick.choice(["1", "2"])
    if pick.random() < 0.7:
        payload["_groupKey"] = pick.choice(["g", "h", "i"])
    if pick.random() < 0.7:
        payload["tenant"] = pick.choice([{"id": pick.choice(TENANTS)}, "none", {}])
    return json.dumps(payload, ensure_ascii=False)


def fill(database: PlainDatabase, pick: random.Random, count: int) -> None:
    rows = [
        {
            "id": f"{n:04}",
            "created": int(START.timestamp() * 1000) + pick.randrange(5),
            "stage": f"s{n}",
            "priority": pick.randrange(3),
            "due": pick.choice([None, None, int(START.timestamp() * 1000) + pick.randrange(-5, 5) * 1000]),
            "payload": random_payload(pick),
        }
        for n in range(count)
    ]
    database.connection.executemany(
        """
        INSERT INTO job_queue (
            id, "createdAt", "updatedAt", "workflowRunId", "stageId", priority, "nextPollAt", payload
        )
        VALUES (:id, :created, :created, 'r', :stage, :priority, :due, :payload)
        """,
        rows,
    )


class Rule:
    """The claim's rule, row by row."""

    def __init__(self, database: PlainDatabase, fairness: JobQueueFairness | None) -> None:
        self._connection = database.connection
        self._fairness = fairness

    def next(self, now: datetime, serves: Sequence[ServedDefinition] | None) -> str | None:
        rows = self._connection.execute(
            'SELECT id, status, priority, "createdAt", "nextPollAt", payload FROM job_queue'
        ).fetchall()
        running = Counter(self._group(row[5]) for row in rows if row[1] == "RUNNING")
        due = [row for row in rows if row[1] == "PENDING" and (row[4] is None or row[4] <= now.timestamp() * 1000)]
        for row in sorted(due, key=lambda row: (-row[2], row[3], row[0])):
            stored = None if row[5] is None else json.loads(row[5])
            if dead_reason(stored) is not None:
                continue
            read = read_payload(stored)
            if not is_served(read.workflow_id, read.definition_version, serves):
                continue
            if self._fairness is None or running[self._group(row[5])] < self._fairness.max_concurrent_per_group:
                return row[0]
        return None

    def _group(self, payload: str | None) -> str:
        stored = None if payload is None else json.loads(payload)
        return "" if self._fairness is None else group_of(stored, self._fairness.path)


@pytest.mark.parametrize("serves", SERVES, ids=["all", "one", "two"])
@pytest.mark.parametrize("fairness", FAIRNESS, ids=["unfair", "by group", "by path"])
@pytest.mark.parametrize(("seed", "count"), [(1, 150), (2, 150), (3, 900)])
async def test_claims_follow_the_rule(
    database: PlainDatabase,
    ports_on: Build,
    clock: ManualClock,
    *,
    serves: list[ServedDefinition] | None,
    fairness: JobQueueFairness | None,
    seed: int,
    count: int,
) -> None:
    pick = random.Random(seed)
    fill(database, pick, count)
    queue, rule = ports_on(database, fairness).job_queue, Rule(database, fairness)
    claimed: list[Any] = []
    for _ in range(120):
        expected = rule.next(clock.now(), serves)
        assert await queue.wait_for_jobs(timedelta(0)) or expected is None
        found = await queue.dequeue(serves)
        assert (found and found.job_id) == expected
        if found is not None:
            claimed.append(found)
        if found is None or pick.random() < 0.5:
            clock.advance(timedelta(seconds=1))
            done = claimed.pop(pick.randrange(len(claimed))) if claimed else None
            if done is not None:
                await queue.complete(done.job_id, done.fence)


async def test_many_whose_date_has_come_stand_in_the_same_order(
    database: PlainDatabase, ports_on: Build, clock: ManualClock
) -> None:
    queue = ports_on(database).job_queue
    jobs = [job(f"s{n}", priority=n % 7, scheduled_for=START - timedelta(seconds=n % 11)) for n in range(3 * FEW)]
    await queue.enqueue_parallel([job("undated", priority=6), *jobs])
    first = await queue.dequeue()
    rest = await queue.dequeue_many(3 * FEW)
    assert first.stage_id == "undated"
    assert [j.priority for j in rest] == sorted((n % 7 for n in range(3 * FEW)), reverse=True)


@pytest.mark.parametrize("fairness", FAIRNESS, ids=["unfair", "by group", "by path"])
async def test_a_dead_job_is_failed_with_its_reason_and_the_next_one_taken(
    database: PlainDatabase, ports_on: Build, *, fairness: JobQueueFairness | None
) -> None:
    ports = ports_on(database, fairness)
    for n, payload in enumerate([None, "null", "[1]", '"x"', "{}", '{"_workflowId": 1}']):
        database.connection.execute(
            """
            INSERT INTO job_queue (id, "createdAt", "updatedAt", "workflowRunId", "stageId", payload, priority)
            VALUES (:id, 0, 0, 'r', :id, :payload, 9)
            """,
            {"id": f"dead{n}", "payload": payload},
        )
    await ports.job_queue.enqueue_parallel([job("live")])
    claimed = await ports.job_queue.dequeue([ServedDefinition(workflow_id="w", version="1")])
    assert claimed.stage_id == "live"
    dead = [await ports.operations.get_job(f"dead{n}") for n in range(6)]
    assert {(j.status, j.attempt, j.started_at, j.completed_at, j.workflow_id) for j in dead} == {
        (Status.FAILED, 0, None, START, "")
    }
    payloads: list[JsonValue] = [None, None, [1], "x", {}, {"_workflowId": 1}]
    assert [j.last_error for j in dead] == [dead_reason(payload) for payload in payloads]


async def test_a_flood_of_a_full_group_is_stepped_over(database: PlainDatabase, ports_on: Build) -> None:
    queue = ports_on(database, JobQueueFairness(max_concurrent_per_group=1)).job_queue
    await queue.enqueue_parallel([job(f"f{n}", priority=9, group_key="flood") for n in range(500)])
    await queue.enqueue_parallel([job(f"o{n}", group_key=f"o{n}") for n in range(3)])
    taken = [(await queue.dequeue()).group_key for _ in range(4)]
    assert taken == ["flood", "o0", "o1", "o2"]
    assert await queue.dequeue() is None
    assert not await queue.wait_for_jobs(timedelta(0))


async def test_no_two_definitions_share_a_lane() -> None:
    ambiguous = [("a", "b/c"), ("a/b", "c"), ("1:a", "b"), ("a", "b"), ("", ""), ("a:1", "")]
    lanes = [lanes_of([ServedDefinition(workflow_id=w or "-", version=v or "-")]) for w, v in ambiguous]
    pinned = [lane for served in lanes for lane in served if "/" in lane and lane != ""]
    assert len({tuple(served) for served in lanes}) == len(ambiguous)
    assert len(set(pinned)) == len(pinned)


async def test_a_payload_comes_back_as_it_was_written(database: PlainDatabase, ports_on: Build) -> None:
    queue = ports_on(database).job_queue
    payload = {
        "big": 10**400 + 1,
        "small": 5e-324,
        "large": 1e300,
        "exact": 0.1 + 0.2,
        "text": 'q"\\\n\u2028é\U0001f600',
    }
    await queue.enqueue_parallel([job(payload=payload)])
    assert (await queue.dequeue()).payload == payload


@pytest.mark.parametrize("path", ['a."b', "a\\b", "a\nb"])
async def test_a_path_that_sqlite_can_not_follow_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match="group_by"):
        FairChoice(JobQueueFairness(max_concurrent_per_group=1, group_by=path))
