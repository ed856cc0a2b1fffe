"""The relay: at least once, in order per run, and nothing lost when it dies anywhere between claim and emit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tests.runtime.relay_support import QUICK, NoLease, Sink, append
from tests.runtime.support import UnreadableError, until
from workflow_adapters import Adapters, OutboxRecord
from workflow_adapters.runtime import Event, OutboxRelay

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("leased", [True, False], ids=["leased", "claimed"])
async def test_events_go_out_once_and_in_order(adapters: Adapters, leased: bool) -> None:
    persistence: Any = adapters.persistence if leased else NoLease(adapters.persistence)
    sink = Sink()
    await append(adapters, a=20, b=3, c=1)
    relay = OutboxRelay(persistence, sink, batch=5, **QUICK)
    while await relay.relay():
        pass
    assert sink.order("a") == list(range(1, 21))
    assert sink.order("b") == [1, 2, 3]
    assert await adapters.persistence.get_unpublished_outbox_events() == []


# A cancellation that nobody had asked for is what awaiting a cancelled task or future raises.
@pytest.mark.parametrize("error", [RuntimeError, UnreadableError, asyncio.CancelledError])
@pytest.mark.parametrize("leased", [True, False], ids=["leased", "claimed"])
async def test_a_failing_run_holds_up_no_other_and_ends_as_a_dead_letter(
    adapters: Adapters, leased: bool, error: type[BaseException]
) -> None:
    persistence: Any = adapters.persistence if leased else NoLease(adapters.persistence)
    sink = Sink()
    sink.broken, sink.error = {"a"}, error
    await append(adapters, a=2, b=3)
    relay = OutboxRelay(persistence, sink, max_attempts=2, **QUICK)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay.run)

        async def both_dead() -> bool:
            return len((await adapters.operations.list_dead_outbox_events()).items) == 2

        await until(both_dead)
        relay.stop()
    assert sink.order("b") == [1, 2, 3]
    assert sink.order("a") == []
    dead = (await adapters.operations.list_dead_outbox_events()).items
    assert [(letter.sequence, letter.retry_count) for letter in dead] == [(2, 2), (1, 2)]
    sink.broken = set()
    await adapters.persistence.replay_dlq_events(10)
    await OutboxRelay(persistence, sink, **QUICK).relay()
    assert sink.order("a") == [1, 2]


class DyingError(BaseException):
    """Stands for the kill of the process: nothing of the relay runs after it."""


class Dying:
    """Dies at the n-th call that the relay makes: of the persistence or the sink, before or after it has happened."""

    def __init__(self, persistence: Any, sink: Sink, point: int) -> None:
        self._persistence = persistence
        self._sink = sink
        self._left = point
        self.dead = False
        for name in dir(persistence):
            if not name.startswith("_"):
                setattr(self, name, self._dying(name))

    def _step(self) -> None:
        if self.dead:
            raise DyingError
        self._left -= 1
        if self._left < 0:
            self.dead = True
            raise DyingError

    async def sink(self, event: OutboxRecord) -> None:
        self._step()
        await self._sink(event)
        self._step()

    def _dying(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any) -> Any:
            self._step()
            answer = await getattr(self._persistence, name)(*args)
            self._step()
            return answer

        return call


async def relay_until_dead(adapters: Adapters, sink: Sink, point: int) -> bool:
    """Whether the relay died before it had nothing left to do."""
    dying = Dying(adapters.persistence, sink, point)
    relay = OutboxRelay(dying, dying.sink, batch=3, **QUICK)  # type: ignore[arg-type]  # it stands in for a persistence
    try:
        while await relay.relay():
            pass
    except* DyingError:
        pass
    return dying.dead


async def test_a_relay_killed_at_any_point_loses_nothing(
    adapters: Adapters, record_property: Callable[[str, object], None]
) -> None:
    sink = Sink()
    points = 0
    for point in range(60):
        runs = {f"{point}-{name}": 3 for name in ("a", "b")}
        died = False
        await append(adapters, **runs)
        second = OutboxRelay(adapters.persistence, sink, batch=2, **QUICK)

        async def all_out(runs: dict[str, int] = runs) -> bool:
            return all(set(sink.order(run_id)) == {1, 2, 3} for run_id in runs)

        async with anyio.create_task_group() as tasks:
            # At every other point the second relay runs beside the first; else the first gets as far as it is let.
            if point % 2:
                tasks.start_soon(second.run)
            died = await relay_until_dead(adapters, sink, point)
            points += died
            if not point % 2:
                tasks.start_soon(second.run)
            await until(all_out)
            second.stop()
        # Alone, the first had everything done before that point: there are no later ones.
        if not died and not point % 2:
            break
    for run_id in {seen.workflow_run_id for seen in sink.seen}:
        order = sink.order(run_id)
        first_times = list(dict.fromkeys(order))
        assert first_times == [1, 2, 3], f"{run_id}: {order}"
    emitted = Counter(seen.id for seen in sink.seen)
    record_property("points", points)
    record_property("emitted twice", emitted.total() - len(emitted))
    assert points > 10


async def test_without_leases_the_ids_are_logged_before_the_emit_and_can_be_handed_back(
    adapters: Adapters, caplog: pytest.LogCaptureFixture
) -> None:
    await append(adapters, a=2)
    logged: list[Any] = []

    async def die(event: OutboxRecord) -> None:
        logged.extend(
            vars(record)["ids"]
            for record in caplog.records
            if getattr(record, "event", "") == "events_claimed_without_lease"
        )
        await asyncio.sleep(60)

    relay = OutboxRelay(NoLease(adapters.persistence), die, **QUICK)  # type: ignore[arg-type]  # it stands in for one
    with caplog.at_level("INFO"):
        # Killed, the relay could not give its claims back: so they stay stamped.
        claimed = await adapters.persistence.claim_unpublished_outbox_events()
        await adapters.persistence.release_outbox_events([one.id for one in claimed])
        with anyio.move_on_after(0.1):
            await relay.relay()
    assert [set(ids) for ids in logged] == [{one.id for one in claimed}]
    await adapters.persistence.claim_unpublished_outbox_events()
    assert await adapters.persistence.get_unpublished_outbox_events() == []
    await adapters.persistence.release_outbox_events(logged[0])
    assert len(await adapters.persistence.get_unpublished_outbox_events()) == 2


@pytest.mark.parametrize("leased", [True, False], ids=["leased", "claimed"])
async def test_a_cancelled_relay_gives_back_what_it_has_not_emitted(adapters: Adapters, leased: bool) -> None:
    async def slow(event: OutboxRecord) -> None:
        scope.cancel()
        await asyncio.sleep(60)

    await append(adapters, a=2)
    persistence: Any = adapters.persistence if leased else NoLease(adapters.persistence)
    relay = OutboxRelay(persistence, slow, lease=timedelta(minutes=5))
    with anyio.CancelScope() as scope:
        await relay.relay()
    assert len(await adapters.persistence.claim_unpublished_outbox_events()) == 2
    assert relay.observation.counts[Event.EVENT_PUBLISHED] == 0
