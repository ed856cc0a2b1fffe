"""Worked examples for the outbox, idempotency keys and transactions."""

from __future__ import annotations

from datetime import timedelta

from tests.worked_examples.examples import HOUR, MINUTE, SECOND, START, Pair, World, error_of, event, example, run
from workflow_adapters import (
    Acquired,
    BuiltInPersistence,
    IdempotencyFence,
    InProgress,
    JobAckOutcome,
    OutboxRecord,
    Replay,
    Status,
    UpdateRunInput,
)


def _order(events: list[OutboxRecord]) -> list[tuple[str, int]]:
    return [(e.workflow_run_id, e.sequence) for e in events]


async def _append(w: World, **counts: int) -> None:
    for run_id, count in counts.items():
        await w.persistence.append_outbox_events([event(run_id, payload=n) for n in range(count)])


@example("append_outbox_events", "sequences per run are assigned 1, 2, 3, … in call order")
async def append_sequences(w: World) -> Pair:
    await w.persistence.append_outbox_events([event("b", payload=1), event("a", payload=2), event("b", payload=3)])
    await w.persistence.append_outbox_events([event("b", payload=4)])
    events = await w.persistence.get_unpublished_outbox_events()
    observed = [(e.workflow_run_id, e.sequence, e.payload) for e in events]
    return observed, [("a", 1, 2), ("b", 1, 1), ("b", 2, 3), ("b", 3, 4)]


@example("append_outbox_events", "A run need not exist. Empty: no-op")
async def append_empty(w: World) -> Pair:
    await w.persistence.append_outbox_events([])
    await _append(w, ghost=1)
    return len(await w.persistence.get_unpublished_outbox_events()), 1


@example("append_outbox_events", "no gaps for committed work: a rolled-back append leaves none")
async def append_rolled_back(w: World) -> Pair:
    await _append(w, a=1)
    try:
        async with w.persistence.transaction() as tx:
            await tx.append_outbox_events([event("a")])
            raise RuntimeError  # the block is to fail
    except RuntimeError:
        await _append(w, a=1)
    return _order(await w.persistence.get_unpublished_outbox_events()), [("a", 1), ("a", 2)]


@example("get_unpublished_outbox_events", "published_at and dlq_at null, by (workflow_run_id, sequence)")
async def unpublished_order(w: World) -> Pair:
    await _append(w, b=2, a=2)
    [first, second, *_] = await w.persistence.get_unpublished_outbox_events()
    await w.persistence.mark_outbox_events_published([first.id])
    await w.persistence.move_outbox_event_to_dlq(second.id)
    return _order(await w.persistence.get_unpublished_outbox_events()), [("b", 1), ("b", 2)]


@example("get_unpublished_outbox_events", "limit 100 by default")
async def unpublished_default_limit(w: World) -> Pair:
    await _append(w, a=101)
    return len(await w.persistence.get_unpublished_outbox_events()), 100


@example("get_unpublished_outbox_events", "at most limit")
async def unpublished_limit(w: World) -> Pair:
    await _append(w, a=3)
    return _order(await w.persistence.get_unpublished_outbox_events(limit=2)), [("a", 1), ("a", 2)]


@example("claim_unpublished_outbox_events", "atomically stamps published_at and returns the rows, listed in order")
async def claim_stamps(w: World) -> Pair:
    await _append(w, b=1, a=2)
    claimed = await w.persistence.claim_unpublished_outbox_events()
    again = await w.persistence.claim_unpublished_outbox_events()
    return (_order(claimed), {e.published_at for e in claimed}, again), ([("a", 1), ("a", 2), ("b", 1)], {START}, [])


@example("claim_unpublished_outbox_events", "from each run its first event, then from each the second, until limit")
async def claim_round_robin(w: World) -> Pair:
    await _append(w, a=50, b=2, c=1)
    claimed = await w.persistence.claim_unpublished_outbox_events(limit=5)
    return _order(claimed), [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]


@example("claim_unpublished_outbox_events", "Runs are served in rotation")
async def claim_rotation(w: World) -> Pair:
    await _append(w, a=3, b=3, c=3)
    served: set[str] = set()
    for _ in range(3):
        [one] = await w.persistence.claim_unpublished_outbox_events(limit=1)
        served.add(one.workflow_run_id)
    return served, {"a", "b", "c"}


@example("claim_unpublished_outbox_events", "every earlier event of its run is published, dead-lettered or handed out")
async def claim_prefix(w: World) -> Pair:
    await _append(w, a=3)
    first = (await w.persistence.get_unpublished_outbox_events())[0]
    await w.persistence.move_outbox_event_to_dlq(first.id)
    return _order(await w.persistence.claim_unpublished_outbox_events(limit=1)), [("a", 2)]


@example("release_outbox_events", "un-claims")
async def release_unclaims(w: World) -> Pair:
    await _append(w, a=1)
    [one] = await w.persistence.claim_unpublished_outbox_events()
    await w.persistence.release_outbox_events([one.id])
    return _order(await w.persistence.claim_unpublished_outbox_events()), [("a", 1)]


@example("release_outbox_events", "Empty lists: no-op; unknown ids are ignored")
async def release_unknown(w: World) -> Pair:
    await w.persistence.release_outbox_events([])
    return await w.persistence.release_outbox_events(["nope"]), None


@example("release_outbox_events", "puts earlier events back after later ones may have gone out")
async def release_earlier(w: World) -> Pair:
    await _append(w, a=2)
    first, _ = await w.persistence.claim_unpublished_outbox_events()
    await w.persistence.release_outbox_events([first.id])
    return _order(await w.persistence.get_unpublished_outbox_events()), [("a", 1)]


@example("mark_outbox_events_published", "marked events are no longer handed out")
async def mark_published(w: World) -> Pair:
    await _append(w, a=2)
    first, _ = await w.persistence.get_unpublished_outbox_events()
    await w.persistence.mark_outbox_events_published([first.id])
    return _order(await w.persistence.claim_unpublished_outbox_events()), [("a", 2)]


@example("mark_outbox_events_published", "Empty lists: no-op")
async def mark_empty(w: World) -> Pair:
    return await w.persistence.mark_outbox_events_published([]), None


@example("mark_outbox_events_published", "unknown ids are ignored")
async def mark_unknown(w: World) -> Pair:
    await _append(w, a=1)
    await w.persistence.mark_outbox_events_published(["nope"])
    return len(await w.persistence.get_unpublished_outbox_events()), 1


@example("increment_outbox_retry_count", "-> int")
async def retry_count(w: World) -> Pair:
    await _append(w, a=1)
    [one] = await w.persistence.get_unpublished_outbox_events()
    counts = [await w.persistence.increment_outbox_retry_count(one.id) for _ in range(2)]
    return (counts, (await w.persistence.get_unpublished_outbox_events())[0].retry_count), ([1, 2], 2)


@example("increment_outbox_retry_count", "Unknown id: NotFoundError")
async def retry_unknown(w: World) -> Pair:
    failed = await error_of(w.persistence.increment_outbox_retry_count("nope"))
    return failed, ("NotFoundError", "outbox event", "nope")


@example("increment_outbox_retry_count", "a new event has retry_count 0")
async def retry_zero(w: World) -> Pair:
    await _append(w, a=1)
    return (await w.persistence.get_unpublished_outbox_events())[0].retry_count, 0


@example("move_outbox_event_to_dlq", "a dead letter no longer holds up its run")
async def dlq_moves_on(w: World) -> Pair:
    await _append(w, a=2)
    first, _ = await w.persistence.get_unpublished_outbox_events()
    await w.persistence.move_outbox_event_to_dlq(first.id)
    return _order(await w.persistence.claim_unpublished_outbox_events()), [("a", 2)]


@example("move_outbox_event_to_dlq", "Unknown id: NotFoundError")
async def dlq_unknown(w: World) -> Pair:
    return await error_of(w.persistence.move_outbox_event_to_dlq("nope")), ("NotFoundError", "outbox event", "nope")


@example("move_outbox_event_to_dlq", "dlq_at is stamped with the clock")
async def dlq_stamp(w: World) -> Pair:
    await _append(w, a=1)
    [one] = await w.persistence.get_unpublished_outbox_events()
    await w.persistence.move_outbox_event_to_dlq(one.id)
    return (await w.operations.list_dead_outbox_events()).items[0].dlq_at, START


@example("replay_dlq_events", "clears dlq_at and published_at, retry_count = 0: claimable even if dead while claimed")
async def replay_claimed(w: World) -> Pair:
    await _append(w, a=1)
    [one] = await w.persistence.claim_unpublished_outbox_events()
    await w.persistence.increment_outbox_retry_count(one.id)
    await w.persistence.move_outbox_event_to_dlq(one.id)
    count = await w.persistence.replay_dlq_events(10)
    [again] = await w.persistence.claim_unpublished_outbox_events()
    return (count, again.retry_count, again.dlq_at, again.sequence), (1, 0, None, 1)


@example("replay_dlq_events", "oldest dead letters first")
async def replay_oldest(w: World) -> Pair:
    await _append(w, a=1, b=1)
    for one in reversed(await w.persistence.get_unpublished_outbox_events()):
        await w.persistence.move_outbox_event_to_dlq(one.id)
        w.clock.advance(MINUTE)
    await w.persistence.replay_dlq_events(1)
    return _order(await w.persistence.get_unpublished_outbox_events()), [("b", 1)]


@example("replay_dlq_events", "-> int, 0 when there is none")
async def replay_none(w: World) -> Pair:
    return await w.persistence.replay_dlq_events(5), 0


@example("lease_outbox_events", "OutboxLease(token, expires_at, events); a leased event has published_at None")
async def lease_record(w: World) -> Pair:
    await _append(w, a=1)
    lease = await w.persistence.lease_outbox_events(lease=30 * SECOND)
    observed = (lease.expires_at, _order(lease.events), lease.events[0].published_at, bool(lease.token))
    return observed, (START + 30 * SECOND, [("a", 1)], None, True)


@example("lease_outbox_events", "While a lease lives, no other claim or lease takes an event of its runs")
async def lease_blocks(w: World) -> Pair:
    await _append(w, a=3, b=1)
    lease = await w.persistence.lease_outbox_events(limit=1)
    await _append(w, a=1)
    other = await w.persistence.claim_unpublished_outbox_events()
    held = lease.events[0].workflow_run_id
    return held in {e.workflow_run_id for e in other}, False


@example("lease_outbox_events", "unconfirmed events of an expired lease are claimable again")
async def lease_expires(w: World) -> Pair:
    await _append(w, a=1)
    await w.persistence.lease_outbox_events(lease=SECOND)
    during = await w.persistence.claim_unpublished_outbox_events()
    w.clock.advance(2 * SECOND)
    return (during, _order(await w.persistence.claim_unpublished_outbox_events())), ([], [("a", 1)])


@example("confirm_outbox_events", "published_at is stamped at confirm")
async def confirm_stamps(w: World) -> Pair:
    await _append(w, a=2)
    lease = await w.persistence.lease_outbox_events()
    w.clock.advance(SECOND)
    count = await w.persistence.confirm_outbox_events(lease.token, [lease.events[0].id])
    await w.persistence.release_outbox_lease(lease.token)
    return (count, _order(await w.persistence.get_unpublished_outbox_events())), (1, [("a", 2)])


@example("confirm_outbox_events", "a late confirm writes nothing and returns 0")
async def confirm_late(w: World) -> Pair:
    await _append(w, a=1)
    lease = await w.persistence.lease_outbox_events(lease=SECOND)
    w.clock.advance(2 * SECOND)
    second = await w.persistence.lease_outbox_events()
    late = await w.persistence.confirm_outbox_events(lease.token, [lease.events[0].id])
    mine = await w.persistence.confirm_outbox_events(second.token, [second.events[0].id])
    return (late, mine), (0, 1)


@example("confirm_outbox_events", "an unknown token confirms nothing")
async def confirm_unknown(w: World) -> Pair:
    await _append(w, a=1)
    lease = await w.persistence.lease_outbox_events()
    return await w.persistence.confirm_outbox_events("nope", [e.id for e in lease.events]), 0


@example("release_outbox_lease", "unconfirmed events are claimable at once")
async def release_lease(w: World) -> Pair:
    await _append(w, a=2)
    lease = await w.persistence.lease_outbox_events()
    await w.persistence.release_outbox_lease(lease.token)
    return _order(await w.persistence.claim_unpublished_outbox_events()), [("a", 1), ("a", 2)]


@example("release_outbox_lease", "confirmed events stay published")
async def release_confirmed(w: World) -> Pair:
    await _append(w, a=1)
    lease = await w.persistence.lease_outbox_events()
    await w.persistence.confirm_outbox_events(lease.token, [lease.events[0].id])
    await w.persistence.release_outbox_lease(lease.token)
    return await w.persistence.get_unpublished_outbox_events(), []


@example("release_outbox_lease", "an unknown or ended lease: no-op")
async def release_unknown_lease(w: World) -> Pair:
    return await w.persistence.release_outbox_lease("nope"), None


@example("acquire_idempotency_key", "Acquired() | Replay(result) | InProgress(); scoped by (key, command_type)")
async def acquire_three(w: World) -> Pair:
    first = await w.persistence.acquire_idempotency_key("k", "c")
    second = await w.persistence.acquire_idempotency_key("k", "c")
    other = await w.persistence.acquire_idempotency_key("k", "d")
    await w.persistence.complete_idempotency_key("k", "c", {"ok": True})
    third = await w.persistence.acquire_idempotency_key("k", "c")
    observed = (type(first), second, type(other), third)
    return observed, (Acquired, InProgress(), Acquired, Replay({"ok": True}))


@example("acquire_idempotency_key", "reclaimed only when stale_in_progress_after is given and its age at now is >= it")
async def acquire_stale(w: World) -> Pair:
    take = w.persistence.acquire_idempotency_key
    await take("k", "c", now=START)
    without = await take("k", "c", now=START + HOUR)
    young = await take("k", "c", now=START + MINUTE - timedelta(milliseconds=1), stale_in_progress_after=MINUTE)
    old = await take("k", "c", now=START + MINUTE, stale_in_progress_after=MINUTE)
    after = await take("k", "c", now=START + MINUTE + SECOND, stale_in_progress_after=MINUTE)
    return (without, young, type(old), after), (InProgress(), InProgress(), Acquired, InProgress())


@example(
    "acquire_idempotency_key", "A completed key is never reclaimed; None is a valid result and replays as Replay(None)"
)
async def acquire_completed(w: World) -> Pair:
    await w.persistence.acquire_idempotency_key("k", "c", now=START)
    await w.persistence.complete_idempotency_key("k", "c", None)
    found = await w.persistence.acquire_idempotency_key(
        "k", "c", now=START + HOUR, stale_in_progress_after=timedelta(0)
    )
    return found, Replay(None)


async def _reclaimed(w: World) -> tuple[IdempotencyFence, IdempotencyFence]:
    first = await w.persistence.acquire_idempotency_key("k", "c", now=START)
    second = await w.persistence.acquire_idempotency_key("k", "c", now=START, stale_in_progress_after=timedelta(0))
    return first.fence, second.fence


@example("complete_idempotency_key", "an owner that stalled past the reclaim can not overwrite its successor's key")
async def complete_superseded(w: World) -> Pair:
    old, new = await _reclaimed(w)
    late = await w.persistence.complete_idempotency_key("k", "c", "old", old)
    mine = await w.persistence.complete_idempotency_key("k", "c", "new", new)
    replay = await w.persistence.acquire_idempotency_key("k", "c")
    return (late, mine, replay), (JobAckOutcome.SUPERSEDED, JobAckOutcome.ACKNOWLEDGED, Replay("new"))


@example("complete_idempotency_key", "Without a fence: NotFoundError when the key does not exist")
async def complete_unknown(w: World) -> Pair:
    failed = await error_of(w.persistence.complete_idempotency_key("k", "c", 1))
    return failed, ("NotFoundError", "idempotency key", "k")


@example("complete_idempotency_key", "A result that looks like the in-progress marker is an InvalidValueError")
async def complete_marker(w: World) -> Pair:
    await w.persistence.acquire_idempotency_key("k", "c")
    marker = {"__workflowEngineState": "in_progress"}
    failed = await error_of(w.persistence.complete_idempotency_key("k", "c", marker))
    return failed, ("InvalidValueError", "result.__workflowEngineState")


@example("complete_idempotency_key", "with a fence a missing key is SUPERSEDED")
async def complete_missing_fenced(w: World) -> Pair:
    fence = IdempotencyFence(id="x", acquired_at=START)
    return await w.persistence.complete_idempotency_key("k", "c", 1, fence), JobAckOutcome.SUPERSEDED


@example("release_idempotency_key", "with a fence only this very acquisition, else SUPERSEDED")
async def release_superseded(w: World) -> Pair:
    old, new = await _reclaimed(w)
    late = await w.persistence.release_idempotency_key("k", "c", old)
    held = await w.persistence.acquire_idempotency_key("k", "c")
    mine = await w.persistence.release_idempotency_key("k", "c", new)
    free = await w.persistence.acquire_idempotency_key("k", "c")
    expected = (JobAckOutcome.SUPERSEDED, InProgress(), JobAckOutcome.ACKNOWLEDGED, Acquired)
    return (late, held, mine, type(free)), expected


@example("release_idempotency_key", "release of a completed or unknown key is a no-op; ACKNOWLEDGED")
async def release_completed(w: World) -> Pair:
    await w.persistence.acquire_idempotency_key("k", "c")
    await w.persistence.complete_idempotency_key("k", "c", 1)
    done = await w.persistence.release_idempotency_key("k", "c")
    unknown = await w.persistence.release_idempotency_key("nope", "c")
    replay = await w.persistence.acquire_idempotency_key("k", "c")
    return (done, unknown, replay), (JobAckOutcome.ACKNOWLEDGED, JobAckOutcome.ACKNOWLEDGED, Replay(1))


@example("release_idempotency_key", "deletes an in-progress key whoever holds it")
async def release_unfenced(w: World) -> Pair:
    await w.persistence.acquire_idempotency_key("k", "c")
    await w.persistence.release_idempotency_key("k", "c")
    return type(await w.persistence.acquire_idempotency_key("k", "c")), Acquired


@example("with_transaction", "commits when fn returns and gives back its value")
async def with_transaction_commits(w: World) -> Pair:
    async def work(tx: BuiltInPersistence) -> str:
        await tx.create_run(run())
        return "done"

    return (await w.persistence.with_transaction(work), await w.persistence.get_run_status("r1")), (
        "done",
        Status.PENDING,
    )


@example("with_transaction", "any exception rolls everything back and propagates unchanged")
async def with_transaction_rolls_back(w: World) -> Pair:
    boom = RuntimeError("boom")

    async def work(tx: BuiltInPersistence) -> None:
        await tx.create_run(run())
        raise boom

    try:
        await w.persistence.with_transaction(work)
    except RuntimeError as error:
        return (error is boom, await w.persistence.get_run("r1")), (True, None)
    return "no error", "an error"


@example("with_transaction", "A tx used after its end is a UsageError")
async def with_transaction_after_end(w: World) -> Pair:
    async def work(tx: BuiltInPersistence) -> object:
        return tx

    tx = await w.persistence.with_transaction(work)
    return await error_of(tx.get_run("r1")), ("UsageError",)


@example("transaction", "Nested use gives a savepoint: a caught inner failure undoes only the inner work")
async def transaction_savepoint(w: World) -> Pair:
    async with w.persistence.transaction() as tx:
        await tx.create_run(run("outer"))
        try:
            async with tx.transaction() as inner:
                await inner.create_run(run("inner"))
                raise RuntimeError  # the block is to fail
        except RuntimeError:
            await tx.create_run(run("after"))
    found = [await w.persistence.get_run_status(id) for id in ("outer", "inner", "after")]
    return found, [Status.PENDING, None, Status.PENDING]


@example("transaction", "a call on the outer tx from inside an inner block is a UsageError")
async def transaction_outer_inside(w: World) -> Pair:
    async with w.persistence.transaction() as tx, tx.transaction():
        return await error_of(tx.get_run("r1")), ("UsageError",)


@example("transaction", "calls on the outer adapter are outside: reads see committed data")
async def transaction_outside_read(w: World) -> Pair:
    async with w.persistence.transaction() as tx:
        await tx.create_run(run())
        return (await w.persistence.get_run("r1"), (await tx.get_run("r1")).id), (None, "r1")


@example("transaction", "every error of ours except BackendError leaves the surrounding transaction usable")
async def transaction_survives(w: World) -> Pair:
    async with w.persistence.transaction() as tx:
        await tx.create_run(run())
        errors = [
            (await error_of(tx.create_run(run())))[0],
            (await error_of(tx.update_run("r1", UpdateRunInput(expected_version=9))))[0],
            (await error_of(tx.update_run("nope", UpdateRunInput())))[0],
        ]
        await tx.create_run(run("r2"))
    return (errors, await w.persistence.get_run_status("r2")), (
        ["AlreadyExistsError", "StaleVersionError", "NotFoundError"],
        Status.PENDING,
    )
