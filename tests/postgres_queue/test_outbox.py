"""Outbox events that are appended, claimed and leased by many at once, on both schemas."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.postgres_queue.support import deadlocks
from workflow_adapters import CreateOutboxEventInput, ManualClock
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.sql.outbox_rotation import OutboxRotation

pytestmark = pytest.mark.asyncio

AT = datetime(2026, 1, 1, tzinfo=UTC)


def event(run: str, number: int = 0) -> CreateOutboxEventInput:
    return CreateOutboxEventInput(
        workflow_run_id=run, event_type="t", payload={"n": number}, causation_id="c", occurred_at=AT
    )


def events(run: str, number: int) -> list[CreateOutboxEventInput]:
    return [event(run, position) for position in range(number)]


def places(records: Sequence[OutboxRecord]) -> list[tuple[str, int]]:
    return [(record.workflow_run_id, record.sequence) for record in records]


async def test_numbers_have_no_gap_under_many_appenders(dsn: str, raw: asyncpg.Connection) -> None:
    runs = [f"run{number}" for number in range(4)]
    async with open_postgres(dsn) as here, open_postgres(dsn) as there:

        async def append(adapters: PostgresAdapters, number: int) -> None:
            for _ in range(8):
                batch = [event(run, number) for run in random.sample(runs, 3) for _ in range(2)]
                await adapters.persistence.append_outbox_events(batch)

        await asyncio.gather(*(append(adapters, number) for adapters in (here, there) for number in range(8)))
    rows = await raw.fetch(
        'SELECT "workflowRunId", array_agg(sequence ORDER BY sequence) FROM outbox_events GROUP BY 1'
    )
    assert sum(len(numbers) for _, numbers in rows) == 16 * 8 * 6
    assert all(numbers == list(range(1, len(numbers) + 1)) for _, numbers in rows)
    assert await deadlocks(dsn) == 0


async def test_numbers_of_transactions_that_roll_back_are_given_again(dsn: str, raw: asyncpg.Connection) -> None:
    async with open_postgres(dsn) as adapters:

        async def append(number: int) -> None:
            try:
                async with adapters.transaction() as tx:
                    await tx.persistence.append_outbox_events(events("run", 2))
                    if number % 3 == 0:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass

        await asyncio.gather(*(append(number) for number in range(24)))
    numbers = await raw.fetchval("SELECT array_agg(sequence ORDER BY sequence) FROM outbox_events")
    assert numbers == list(range(1, 33))


async def test_the_order_of_a_call_is_kept_within_each_run(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        mixed = [event("b", 1), event("a", 2), event("b", 3), event("a", 4)]
        await adapters.persistence.append_outbox_events(mixed)
        stored = await adapters.persistence.get_unpublished_outbox_events()
    assert [(*place, record.payload) for place, record in zip(places(stored), stored, strict=True)] == [
        ("a", 1, {"n": 2}),
        ("a", 2, {"n": 4}),
        ("b", 1, {"n": 1}),
        ("b", 2, {"n": 3}),
    ]


async def test_a_writer_without_the_lock_costs_no_transaction(dsn: str, raw: asyncpg.Connection) -> None:
    """As the TypeScript engine outside of a transaction: read the last number, then insert the next."""
    insert = """
        INSERT INTO outbox_events (
            id, "createdAt", "workflowRunId", sequence, "eventType", payload, "causationId", "occurredAt"
        )
        SELECT $1, now(), 'run', coalesce(max(sequence), 0) + 1, 't', '{}', 'c', now()
        FROM outbox_events WHERE "workflowRunId" = 'run'
    """
    foreign = 0
    async with open_postgres(dsn) as adapters:

        async def ours() -> None:
            for _ in range(30):
                async with adapters.transaction() as tx:
                    await tx.persistence.append_outbox_events(events("run", 2))

        async def theirs() -> None:
            nonlocal foreign
            for number in range(200):
                try:
                    await raw.execute(insert, f"foreign{number}")
                except asyncpg.UniqueViolationError:
                    continue
                foreign += 1

        await asyncio.gather(ours(), ours(), theirs())
    numbers = await raw.fetchval("SELECT array_agg(sequence ORDER BY sequence) FROM outbox_events")
    assert numbers == list(range(1, 121 + foreign))


async def test_claims_take_each_event_once_and_none_before_an_earlier_one(dsn: str, raw: asyncpg.Connection) -> None:
    """Events of a run that are published have no unpublished one before them, at any instant."""
    taken: list[tuple[str, int]] = []
    out_of_order = """
        SELECT count(*)
        FROM outbox_events later
        JOIN outbox_events earlier
          ON earlier."workflowRunId" = later."workflowRunId" AND earlier.sequence < later.sequence
        WHERE later."publishedAt" IS NOT NULL AND earlier."publishedAt" IS NULL
    """
    async with open_postgres(dsn) as here, open_postgres(dsn) as there:
        await here.persistence.append_outbox_events(
            [event("giant", n) for n in range(150)] + [event(f"run{n % 20:02}", n) for n in range(100)]
        )
        done = False

        async def claim(adapters: PostgresAdapters) -> None:
            idle = 0
            while idle < 3:
                claimed = await adapters.persistence.claim_unpublished_outbox_events(random.choice([1, 7, 25]))
                taken.extend(places(claimed))
                idle = 0 if claimed or not done else idle + 1

        async def append() -> None:
            nonlocal done
            for number in range(30):
                await here.persistence.append_outbox_events([event("giant", number), event("late", number)])
            done = True

        async def watch() -> list[int]:
            seen: list[int] = []
            while not done:
                seen.append(await raw.fetchval(out_of_order))
            return seen

        watching = asyncio.create_task(watch())
        await asyncio.gather(append(), *(claim(adapters) for adapters in (here, there) for _ in range(3)))
        seen = await watching
        assert await here.persistence.get_unpublished_outbox_events() == []
    assert set(Counter(taken).values()) == {1}
    assert len(taken) == 310
    assert set(seen) == {0}


async def test_runs_take_turns(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        outbox = adapters.persistence
        await outbox.append_outbox_events(events("a", 50) + events("b", 2) + events("c", 1))
        assert places(await outbox.claim_unpublished_outbox_events(4)) == [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
        # Its turn ended with a; then b goes first, and from the runs before it what is left is taken.
        assert places(await outbox.claim_unpublished_outbox_events(3)) == [("a", 3), ("a", 4), ("b", 2)]
        await outbox.append_outbox_events([event("0"), event("d")])
        assert places(await outbox.claim_unpublished_outbox_events(2)) == [("0", 1), ("d", 1)]


async def test_a_run_that_somebody_holds_is_passed_by_whole(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        await adapters.persistence.append_outbox_events(events("a", 5) + events("b", 2))
        async with adapters.transaction() as tx:
            assert places(await tx.persistence.claim_unpublished_outbox_events(1)) == [("a", 1)]
            async with asyncio.timeout(5):
                there = await adapters.persistence.claim_unpublished_outbox_events()
            assert places(there) == [("b", 1), ("b", 2)]
        assert places(await adapters.persistence.claim_unpublished_outbox_events()) == [("a", n) for n in range(2, 6)]


async def test_a_row_that_somebody_holds_ends_what_is_taken_of_its_run(dsn: str, raw: asyncpg.Connection) -> None:
    async with open_postgres(dsn) as adapters:
        await adapters.persistence.append_outbox_events(events("a", 5))
        async with raw.transaction():
            await raw.execute("SELECT FROM outbox_events WHERE sequence = 3 FOR UPDATE")
            taken = await adapters.persistence.claim_unpublished_outbox_events()
        assert places(taken) == [("a", 1), ("a", 2)]


async def test_leases_live_and_expire(dsn: str) -> None:
    clock = ManualClock(AT)
    async with open_postgres(dsn, clock=clock) as here, open_postgres(dsn, clock=clock) as there:
        await here.persistence.append_outbox_events(events("a", 3) + events("b", 1))
        first = await here.persistence.lease_outbox_events(2)
        assert places(first.events) == [("a", 1), ("b", 1)]
        assert first.expires_at == AT + timedelta(seconds=30)
        # At the same instant, by another process: a lease of its own, and nothing of the runs that are leased.
        await here.persistence.append_outbox_events([event("c")])
        second = await there.persistence.lease_outbox_events()
        assert places(second.events) == [("c", 1)]
        assert second.token != first.token
        await there.persistence.release_outbox_lease(second.token)
        assert places(await there.persistence.claim_unpublished_outbox_events()) == [("c", 1)]
        assert await here.persistence.confirm_outbox_events(first.token, [first.events[0].id]) == 1
        clock.advance(timedelta(seconds=30))
        assert await here.persistence.confirm_outbox_events(first.token, [first.events[1].id]) == 0
        assert places(await there.persistence.claim_unpublished_outbox_events()) == [("a", 2), ("a", 3), ("b", 1)]


async def test_nothing_is_lost_when_relays_are_killed_at_any_point(dsn: str) -> None:
    clock = ManualClock(AT)
    emitted: defaultdict[str, list[int]] = defaultdict(list)
    async with open_postgres(dsn, clock=clock) as adapters:
        outbox = adapters.persistence
        await outbox.append_outbox_events([event(f"run{number % 5}") for number in range(100)])

        async def relay() -> None:
            lease = await outbox.lease_outbox_events(9)
            for record in lease.events:
                emitted[record.workflow_run_id].append(record.sequence)
                await asyncio.sleep(0)
            await outbox.confirm_outbox_events(lease.token, [record.id for record in lease.events])

        while await outbox.get_unpublished_outbox_events(1):
            doomed = [asyncio.create_task(relay()) for _ in range(3)]
            await asyncio.sleep(random.random() / 50)
            for task in doomed[:2]:
                task.cancel()
            await asyncio.gather(*doomed, return_exceptions=True)
            clock.advance(timedelta(seconds=31))
    for numbers in emitted.values():
        assert list(dict.fromkeys(numbers)) == list(range(1, 21))


@pytest.mark.parametrize("owned", [True, False])
async def test_turns_begin_after_the_run_that_was_served_last(owned: bool) -> None:
    def record(run: str, sequence: int) -> OutboxRecord:
        given: dict[str, Any] = {"retry_count": 0, "dlq_at": None, "published_at": None, "occurred_at": AT}
        return OutboxRecord(
            id="", workflow_run_id=run, sequence=sequence, event_type="", payload=None, causation_id="", **given
        )

    rotation = OutboxRotation(last_run="m" if owned else "")
    rotation.served([])
    assert rotation.last_run == ("m" if owned else "")
    rotation.served([record("a", 1), record("b", 1), record("z", 1)])
    assert rotation.last_run == ("b" if owned else "z")
    rotation.served([record("a", 1), record("a", 2), record("z", 1)])
    assert rotation.last_run == "a"
