"""The relay while its database fails: the loop goes on, a cancellation is heard, nothing stays stamped unseen."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from tests.runtime.relay_support import QUICK, NoLease, Sink, Troubled, append, open_events
from tests.runtime.support import until
from tests.runtime.troubles import AWAY, TROUBLES
from workflow_adapters import Adapters, OutboxRecord
from workflow_adapters.runtime import Event, Observation, OutboxRelay, outbox_relay
from workflow_adapters.runtime.outbox_emission import FORGOTTEN_AFTER, Emission, Pass, Retries

pytestmark = pytest.mark.asyncio


def persistence_of(troubled: Troubled, leased: bool) -> Any:
    return troubled if leased else NoLease(troubled)


on_memory = pytest.mark.parametrize("adapters", ["memory"], indirect=True)
both_ways = pytest.mark.parametrize("leased", [True, False], ids=["leased", "claimed"])
native_or_scope = pytest.mark.parametrize("native", [True, False], ids=["task.cancel()", "cancel scope"])


async def cancelled(relay: OutboxRelay, native: bool, after: asyncio.Event | float) -> None:
    """Run the relay, cancel it when `after` is set or after that many seconds, and see it end."""
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await relay.run()

    task = asyncio.create_task(run())
    await (asyncio.sleep(after) if isinstance(after, float | int) else after.wait())
    if native:
        task.cancel()
    else:
        scope.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    assert done, "the relay went on"
    assert task.cancelled() is native


@on_memory
@both_ways
@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("call", ["increment_outbox_retry_count", "move_outbox_event_to_dlq"])
async def test_a_sink_and_a_database_that_fail_together_do_not_end_the_relay(
    adapters: Adapters, leased: bool, error: Exception, call: str
) -> None:
    await append(adapters, a=1, b=3, c=1)
    troubled, sink = Troubled(adapters.persistence), Sink()
    sink.broken, troubled.troubles = {"a", "c"}, {call: error}
    relay = OutboxRelay(persistence_of(troubled, leased), sink, max_attempts=1, **QUICK)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay.run)

        async def tried_again() -> bool:
            return relay.observation.counts[Event.RELAY_FAILED] > 2

        await until(tried_again)
        assert sink.order("b") == [1, 2, 3], "a run goes on while another one's failure can not be recorded"
        sink.broken, troubled.troubles = set(), {}

        async def all_out() -> bool:
            return await open_events(adapters) == 0

        await until(all_out)
        relay.stop()
    assert (sink.order("a"), sink.order("b"), sink.order("c")) == ([1], [1, 2, 3], [1])


@on_memory
@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
async def test_events_that_can_not_be_confirmed_do_not_end_the_relay(adapters: Adapters, error: Exception) -> None:
    await append(adapters, a=2, b=2)
    troubled, sink = Troubled(adapters.persistence), Sink()
    troubled.troubles = {"confirm_outbox_events": error}
    relay = OutboxRelay(persistence_of(troubled, leased=True), sink, **QUICK)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay.run)

        async def gave_up_twice() -> bool:
            return len(sink.seen) >= 4

        await until(gave_up_twice)
        troubled.troubles = {}

        async def all_out() -> bool:
            return await open_events(adapters) == 0

        await until(all_out)
        relay.stop()
    assert list(dict.fromkeys(sink.order("a"))) == [1, 2]


@on_memory
@both_ways
@native_or_scope
async def test_a_cancellation_is_heard_while_the_database_is_away(
    adapters: Adapters, leased: bool, native: bool
) -> None:
    await append(adapters, a=2)
    troubled = Troubled(adapters.persistence)
    emitting = asyncio.Event()

    async def slow(event: OutboxRecord) -> None:
        troubled.troubles = dict.fromkeys(("release_outbox_lease", "release_outbox_events"), AWAY)
        emitting.set()
        await asyncio.sleep(60)

    relay = OutboxRelay(persistence_of(troubled, leased), slow, lease=timedelta(minutes=5))
    await cancelled(relay, native, after=emitting)
    assert troubled.failed == ["release_outbox_lease" if leased else "release_outbox_events"]


@on_memory
@both_ways
@native_or_scope
async def test_a_claim_that_is_under_way_at_a_cancellation_is_given_back(
    adapters: Adapters, leased: bool, native: bool
) -> None:
    await append(adapters, a=2)
    troubled, sink = Troubled(adapters.persistence), Sink()
    troubled.late = {"lease_outbox_events", "claim_unpublished_outbox_events"}
    relay = OutboxRelay(persistence_of(troubled, leased), sink, lease=timedelta(minutes=5))
    await cancelled(relay, native, after=0.03)
    assert sink.seen == []
    assert len(await adapters.persistence.claim_unpublished_outbox_events()) == 2


@on_memory
@both_ways
@native_or_scope
async def test_a_claim_that_is_never_answered_holds_up_no_cancellation(
    adapters: Adapters, leased: bool, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubled = Troubled(adapters.persistence)
    troubled.late = {"lease_outbox_events", "claim_unpublished_outbox_events"}
    troubled.seconds_late = 60
    monkeypatch.setattr(outbox_relay, "CLEAN_UP", 0.05)
    relay = OutboxRelay(persistence_of(troubled, leased), Sink(), lease=timedelta(minutes=5))
    await cancelled(relay, native, after=0.03)


@on_memory
async def test_events_that_could_not_be_given_back_are_given_back_later(adapters: Adapters) -> None:
    await append(adapters, a=3, b=1)
    troubled, sink = Troubled(adapters.persistence), Sink()
    sink.broken = {"a"}
    troubled.troubles = {"release_outbox_events": AWAY}
    relay = OutboxRelay(persistence_of(troubled, leased=False), sink, **QUICK)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay.run)

        async def tried_again() -> bool:
            return len(troubled.failed) > 2

        await until(tried_again)
        sink.broken, troubled.troubles = set(), {}

        async def all_out() -> bool:
            return sink.order("a") == [1, 2, 3]

        await until(all_out)
        relay.stop()
    assert sink.order("b") == [1]


@on_memory
@both_ways
async def test_a_dead_letter_that_was_replayed_and_fails_again_is_not_lost(adapters: Adapters, leased: bool) -> None:
    await append(adapters, a=1)
    sink = Sink()
    sink.broken = {"a"}
    relay = OutboxRelay(
        persistence_of(Troubled(adapters.persistence), leased=leased),
        sink,
        max_attempts=2,
        lease=timedelta(seconds=0.05),
    )

    async def dead() -> bool:
        await relay.relay()
        return len((await adapters.operations.list_dead_outbox_events()).items) == 1

    async def failed_again() -> bool:
        await relay.relay()
        return relay.observation.counts[Event.EVENT_RETRIED] == 2

    async def out() -> bool:
        await relay.relay()
        return sink.order("a") == [1]

    await until(dead)
    assert await adapters.persistence.replay_dlq_events(1) == 1
    await until(failed_again)
    assert await open_events(adapters) == 1
    sink.broken = set()
    await until(out)


@on_memory
async def test_a_run_is_remembered_only_while_its_event_fails(adapters: Adapters) -> None:
    await append(adapters, dies=1, gone=1, recovers=1)
    dies, gone, recovers = await adapters.persistence.get_unpublished_outbox_events()
    sink, retries = Sink(), Retries(max_attempts=2)
    sink.broken = {"dies", "gone", "recovers"}
    emission = Emission(adapters.persistence, sink, retries, Observation("relay"))
    dead: list[OutboxRecord] = []

    async def emit(event: OutboxRecord) -> None:
        async def waited() -> bool:
            return not retries.waiting(event.workflow_run_id)

        await until(waited)
        await emission.emit_run([event], Pass(float("inf"), published, dead.append))

    async def published(event: OutboxRecord) -> None:
        assert event is recovers

    for one in (dies, gone, recovers):
        await emit(one)
    assert retries.remembered == 3
    await emit(dies)
    assert retries.remembered == 2
    await adapters.persistence.mark_outbox_events_published([gone.id])
    await adapters.operations.purge_outbox_events(datetime.now(UTC) + timedelta(days=1), 1)
    await emit(gone)
    assert retries.remembered == 1
    sink.broken = set()
    await emit(recovers)
    assert retries.remembered == 0
    assert dead == [dies, gone]


async def test_runs_that_another_relay_published_are_forgotten_in_time() -> None:
    now = 0.0
    retries = Retries(max_attempts=2, monotonic=lambda: now)
    for second in range(3 * FORGOTTEN_AFTER):
        now = float(second)
        retries.failed(f"run {second}")
        assert retries.waiting(f"run {second}")
    assert FORGOTTEN_AFTER < retries.remembered < FORGOTTEN_AFTER + 20
