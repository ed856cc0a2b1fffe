"""Order, rotation and leases of the outbox."""

from datetime import timedelta
from typing import Any

import pytest

from tests.memory.inputs import event
from tests.memory.test_transactions import UndoError, undone
from workflow_adapters import Adapters, ManualClock, OutboxRecord, open_memory

pytestmark = pytest.mark.anyio

LEASE = timedelta(seconds=30)


def outbox_of(adapters: Adapters) -> Any:
    return adapters.persistence


def names(events: Any) -> list[str]:
    return [f"{e.workflow_run_id}{e.sequence}" for e in events]


async def fill(adapters: Adapters, **counts: int) -> dict[str, OutboxRecord]:
    await adapters.persistence.append_outbox_events([event(r) for r, n in counts.items() for _ in range(n)])
    events = await adapters.persistence.get_unpublished_outbox_events(1000)
    return {f"{e.workflow_run_id}{e.sequence}": e for e in events}


async def test_sequences_have_no_gap_after_a_rollback() -> None:
    async with open_memory() as adapters:
        await fill(adapters, a=2)
        async with undone(), adapters.transaction() as tx:
            await tx.persistence.append_outbox_events([event("a"), event("a")])
            raise UndoError
        await fill(adapters, a=1)
        assert names(await adapters.persistence.get_unpublished_outbox_events()) == ["a1", "a2", "a3"]


async def test_each_run_gives_its_first_event_before_any_gives_its_second() -> None:
    async with open_memory() as adapters:
        await fill(adapters, a=5, b=2, c=1)
        claims = [names(await adapters.persistence.claim_unpublished_outbox_events(limit)) for limit in (2, 3, 9)]
        # After a and b the rotation goes on with c; then a and b give their second ones.
        assert claims == [["a1", "b1"], ["a2", "b2", "c1"], ["a3", "a4", "a5"]]


async def test_a_run_that_keeps_failing_does_not_starve_the_others() -> None:
    async with open_memory() as adapters:
        await fill(adapters, a=1, b=1, c=1)
        served: list[str] = []
        for _ in range(6):
            (claimed,) = await adapters.persistence.claim_unpublished_outbox_events(1)
            served.append(claimed.workflow_run_id)
            await adapters.persistence.release_outbox_events([claimed.id])
        assert served == ["a", "b", "c", "a", "b", "c"]


async def test_dead_and_published_events_do_not_hold_up_their_run_but_released_ones_do_again() -> None:
    async with open_memory() as adapters:
        events = await fill(adapters, a=4)
        await adapters.persistence.move_outbox_event_to_dlq(events["a1"].id)
        await adapters.persistence.mark_outbox_events_published([events["a2"].id, "unknown"])
        assert names(await adapters.persistence.claim_unpublished_outbox_events(1)) == ["a3"]
        await adapters.persistence.release_outbox_events([events["a2"].id, events["a2"].id])
        assert names(await adapters.persistence.claim_unpublished_outbox_events(1)) == ["a2"]
        assert await adapters.persistence.replay_dlq_events(5) == 1
        assert names(await adapters.persistence.claim_unpublished_outbox_events(9)) == ["a1", "a4"]


async def test_a_replayed_event_is_claimable_though_it_died_claimed() -> None:
    async with open_memory() as adapters:
        await fill(adapters, a=1)
        (claimed,) = await adapters.persistence.claim_unpublished_outbox_events()
        assert await adapters.persistence.increment_outbox_retry_count(claimed.id) == 1
        await adapters.persistence.move_outbox_event_to_dlq(claimed.id)
        assert await adapters.persistence.replay_dlq_events(1) == 1
        (again,) = await adapters.persistence.claim_unpublished_outbox_events()
        assert (again.id, again.retry_count, again.dlq_at) == (claimed.id, 0, None)


async def test_a_lease_keeps_its_runs_until_it_expires() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        await fill(adapters, a=3, b=1)
        outbox = outbox_of(adapters)
        lease = await outbox.lease_outbox_events(1, LEASE)
        assert names(lease.events) == ["a1"]
        assert (lease.expires_at, lease.events[0].published_at) == (clock.now() + LEASE, None)
        assert names(await outbox.get_unpublished_outbox_events()) == ["a2", "a3", "b1"]
        assert names(await outbox.claim_unpublished_outbox_events()) == ["b1"]
        stats = await adapters.operations.outbox_stats()
        assert (stats.unpublished, stats.leased) == (2, 1)
        clock.advance(LEASE)
        assert await outbox.confirm_outbox_events(lease.token, [lease.events[0].id]) == 0
        assert names(await outbox.get_unpublished_outbox_events()) == ["a1", "a2", "a3"]
        second = await outbox.lease_outbox_events(9, LEASE)
        assert names(second.events) == ["a1", "a2", "a3"]
        assert await outbox.confirm_outbox_events(lease.token, [lease.events[0].id]) == 0


async def test_what_is_confirmed_is_published_and_the_rest_comes_back() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        events = await fill(adapters, a=3)
        outbox = outbox_of(adapters)
        lease = await outbox.lease_outbox_events(9, LEASE)
        first = events["a1"].id
        assert await outbox.confirm_outbox_events(lease.token, [first, first, "unknown"]) == 1
        assert await outbox.confirm_outbox_events(lease.token, [first]) == 0
        await outbox.release_outbox_lease(lease.token)
        await outbox.release_outbox_lease("unknown")
        assert names(await outbox.claim_unpublished_outbox_events()) == ["a2", "a3"]


@pytest.mark.parametrize("end", ["release_outbox_events", "mark_outbox_events_published"])
async def test_releasing_or_marking_an_event_ends_the_lease_on_it(end: str) -> None:
    async with open_memory() as adapters:
        events = await fill(adapters, a=1)
        outbox = outbox_of(adapters)
        lease = await outbox.lease_outbox_events()
        await getattr(outbox, end)([events["a1"].id])
        assert await outbox.confirm_outbox_events(lease.token, [events["a1"].id]) == 0
        left = await outbox.claim_unpublished_outbox_events()
        assert names(left) == (["a1"] if end == "release_outbox_events" else [])


async def test_limits_of_zero_take_nothing_and_many_ids_work() -> None:
    async with open_memory() as adapters:
        events = await fill(adapters, a=1)
        outbox = outbox_of(adapters)
        assert await outbox.claim_unpublished_outbox_events(0) == []
        assert (await outbox.lease_outbox_events(0)).events == ()
        await outbox.mark_outbox_events_published([*(str(n) for n in range(40_000)), events["a1"].id])
        assert await outbox.claim_unpublished_outbox_events() == []
