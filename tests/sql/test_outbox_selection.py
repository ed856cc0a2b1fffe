"""Which events a claim or lease on SQLite takes, held against the rule written in Python."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import pytest

from tests.sql.sqlite_database import PlainDatabase
from tests.worked_examples.examples import START, event
from workflow_adapters import ManualClock

pytestmark = pytest.mark.asyncio

Build = Callable[..., Any]


def expected_selection(queues: dict[str, list[str]], last_run: str, limit: int) -> list[tuple[str, str]]:
    runs = sorted(run for run, ids in queues.items() if ids)
    start = bisect_right(runs, last_run)
    turns = zip_longest(*([(run, id) for id in queues[run]] for run in runs[start:] + runs[:start]))
    return [one for turn in turns for one in turn if one is not None][:limit]


@pytest.mark.parametrize("seed", range(5))
async def test_runs_take_turns(database: PlainDatabase, ports_on: Build, seed: int) -> None:
    persistence, pick = ports_on(database).persistence, random.Random(seed)
    last_run = ""
    for _ in range(60):
        runs = [f"r{pick.randrange(12):02}" for _ in range(pick.choice([0, 1, 5, 40]))]
        await persistence.append_outbox_events([event(run) for run in runs])
        queues: dict[str, list[str]] = {}
        for waiting in await persistence.get_unpublished_outbox_events(10_000):
            queues.setdefault(waiting.workflow_run_id, []).append(waiting.id)
        limit = pick.choice([0, 1, 3, 10, 50])
        expected = expected_selection(queues, last_run, limit)
        claimed = await persistence.claim_unpublished_outbox_events(limit)
        assert {one.id for one in claimed} == {id for _, id in expected}
        assert [(e.workflow_run_id, e.sequence) for e in claimed] == sorted(
            (e.workflow_run_id, e.sequence) for e in claimed
        )
        last_run = expected[-1][0] if expected else last_run


async def test_sequences_have_no_gap_within_and_between_calls(database: PlainDatabase, ports_on: Build) -> None:
    persistence = ports_on(database).persistence
    for n in range(5):
        await persistence.append_outbox_events([event(run, payload=[n, run]) for run in "abacab"])
    events = await persistence.get_unpublished_outbox_events()
    assert [(e.workflow_run_id, e.sequence) for e in events] == [
        (run, sequence) for run, count in (("a", 15), ("b", 10), ("c", 5)) for sequence in range(1, count + 1)
    ]
    assert [e.payload for e in events if e.workflow_run_id == "c"] == [[n, "c"] for n in range(5)]


async def test_a_token_is_never_used_twice(database: PlainDatabase, ports_on: Build, clock: ManualClock) -> None:
    persistence = ports_on(database).persistence
    await persistence.append_outbox_events([event("a"), event("b")])
    first = await persistence.lease_outbox_events(limit=1)
    second = await persistence.lease_outbox_events(limit=1)
    await persistence.release_outbox_lease(first.token)
    third = await persistence.lease_outbox_events(limit=1)
    assert len({first.token, second.token, third.token}) == 3
    assert await persistence.confirm_outbox_events(first.token, [e.id for e in third.events]) == 0
    assert await persistence.confirm_outbox_events(third.token, [e.id for e in third.events]) == 1
    assert first.expires_at == START + timedelta(seconds=30)


async def test_an_expired_lease_can_not_be_confirmed_even_if_nobody_took_its_events(
    database: PlainDatabase, ports_on: Build, clock: ManualClock
) -> None:
    persistence = ports_on(database).persistence
    await persistence.append_outbox_events([event("a")])
    lease = await persistence.lease_outbox_events(lease=timedelta(seconds=1))
    clock.advance(timedelta(seconds=1))
    assert await persistence.confirm_outbox_events(lease.token, [lease.events[0].id]) == 0
    [again] = await persistence.get_unpublished_outbox_events()
    assert again.published_at is None
    assert [e.id for e in await persistence.claim_unpublished_outbox_events()] == [again.id]
