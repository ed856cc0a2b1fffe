"""Leases on outbox events: nothing is lost when a relay dies between claim and emit."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from conformance.builders import event
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, MS
from workflow_adapters.ports.outbox import SupportsOutboxLease
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxLease, OutboxRecord

_NEEDS: Final = (SupportsOutboxLease,)
# What happens at the end of a lease.
_TIMED: Final = (SupportsOutboxLease, Requires("clock", "caller"))


async def _append(ctx: Context[WorkflowPersistence], runs: int, each: int) -> list[str]:
    ids = [ctx.new_id("run") for _ in range(runs)]
    await ctx.adapter.append_outbox_events([event(run_id) for run_id in ids for _ in range(each)])
    return ids


async def _lease(ctx: Context[WorkflowPersistence], limit: int = 100, lease: timedelta = MINUTE) -> OutboxLease:
    return await ctx.capability(SupportsOutboxLease).lease_outbox_events(limit, lease)


def _places(events: list[OutboxRecord] | tuple[OutboxRecord, ...]) -> list[tuple[str, int]]:
    return [(one.workflow_run_id, one.sequence) for one in events]


@clause(
    "WP-LEASE-01",
    MUST,
    text="A lease takes events in the order of a claim, and says until when; they read as not published.",
    why="A relay that reads published_at would believe that somebody has sent them.",
    hints=["expires_at = now + lease. A marker in published_at is an adapter's own business."],
    needs=_NEEDS,
    after=["WP-FLUSH-02"],
)
async def leased(ctx: Context[WorkflowPersistence]) -> None:
    runs = await _append(ctx, 2, 2)
    lease = await _lease(ctx)
    ctx.expect("events leased", _places(lease.events)).equals([(run, n) for run in runs for n in (1, 2)])
    ctx.expect("published_at", {one.published_at for one in lease.events}).equals({None})
    ctx.expect("the token", lease.token).satisfies("a text that is not empty", bool)
    if ctx.parameters.clock == "caller":
        ctx.expect("expires_at", lease.expires_at).equals(ctx.now() + MINUTE)


@clause(
    "WP-LEASE-02",
    MUST,
    text="While a lease lives, no claim and no other lease takes an event of its runs, not even one appended later.",
    why="A later event of the run would be sent before those that the relay holds.",
    hints=["The run is held, not only the rows."],
    needs=_NEEDS,
    after=["WP-LEASE-01"],
)
async def runs_are_held(ctx: Context[WorkflowPersistence]) -> None:
    other = await ctx.second()
    (run_id,) = await _append(ctx, 1, 3)
    lease = await _lease(ctx, 2)
    ctx.expect("events leased", _places(lease.events)).equals([(run_id, 1), (run_id, 2)])
    await ctx.adapter.append_outbox_events([event(run_id)])
    free = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(free)])
    second = await ctx.capability(SupportsOutboxLease, other).lease_outbox_events()
    ctx.expect("events of a second lease", _places(second.events)).equals([(free, 1)])
    ctx.expect("events claimed", await other.claim_unpublished_outbox_events()).is_empty()


@clause(
    "WP-LEASE-03",
    MUST,
    text="confirm_outbox_events publishes the named events of the lease for good, and returns how many.",
    why="What was sent must not be sent again when the lease ends.",
    hints=["published_at = now, where the lease still holds the row."],
    needs=_TIMED,
    after=["WP-LEASE-01"],
)
async def confirmed(ctx: Context[WorkflowPersistence]) -> None:
    (run_id,) = await _append(ctx, 1, 3)
    lease = await _lease(ctx)
    queue = ctx.capability(SupportsOutboxLease)
    named = [one.id for one in lease.events[:2]]
    ctx.expect("events confirmed", await queue.confirm_outbox_events(lease.token, named)).equals(2)
    await ctx.advance(HOUR)
    again = await _lease(ctx)
    ctx.expect("events leased after the end", _places(again.events)).equals([(run_id, 3)])


@clause(
    "WP-LEASE-04",
    MUST,
    text="Events that were not confirmed when the lease ends can be leased or claimed again, from its last instant on.",
    why="A relay that died in between would take its events with it.",
    hints=["expires_at <= now: the lease is over."],
    needs=_TIMED,
    after=["WP-LEASE-02"],
)
async def expired(ctx: Context[WorkflowPersistence]) -> None:
    runs = await _append(ctx, 2, 2)
    expected = [(run, n) for run in runs for n in (1, 2)]
    await _lease(ctx)
    await ctx.advance(MINUTE - MS)
    ctx.expect("events leased a millisecond early", _places((await _lease(ctx)).events)).is_empty()
    await ctx.advance(MS)
    listed = await ctx.adapter.get_unpublished_outbox_events()
    ctx.expect("unpublished events at the end", _places(listed)).equals(expected)
    ctx.expect("events leased at the end", _places((await _lease(ctx)).events)).equals(expected)
    await ctx.advance(MINUTE)
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed at the end of the second lease", _places(claimed)).equals(expected)


@clause(
    "WP-LEASE-05",
    MUST,
    text="A confirmation after the end of the lease writes nothing and returns 0.",
    why="The events may be another relay's by then; marking them sent would lose them if that one fails.",
    hints=["The confirmation compares the token and the lease's end with now."],
    needs=_TIMED,
    after=["WP-LEASE-04"],
)
async def late(ctx: Context[WorkflowPersistence]) -> None:
    await _append(ctx, 1, 2)
    lost = await _lease(ctx)
    ids = [one.id for one in lost.events]
    await ctx.advance(MINUTE)
    queue = ctx.capability(SupportsOutboxLease)
    ctx.expect("events confirmed late", await queue.confirm_outbox_events(lost.token, ids)).equals(0)
    successor = await _lease(ctx)
    ctx.expect("events of the successor", [one.id for one in successor.events]).equals(ids)
    ctx.expect("events confirmed by the old token", await queue.confirm_outbox_events(lost.token, ids)).equals(0)
    ctx.expect("events confirmed by the new one", await queue.confirm_outbox_events(successor.token, ids)).equals(2)


@clause(
    "WP-LEASE-06",
    MUST,
    text="A confirmation counts only events that this very lease holds: not others', and none twice.",
    why="A relay would publish what another is about to send.",
    hints=["WHERE id = ANY(…) AND the token matches."],
    needs=_NEEDS,
    after=["WP-LEASE-02"],
)
async def only_its_own(ctx: Context[WorkflowPersistence]) -> None:
    await _append(ctx, 2, 1)
    first, second = await _lease(ctx, 1), await _lease(ctx, 1)
    queue = ctx.capability(SupportsOutboxLease)
    ids = [one.id for one in (*first.events, *second.events)]
    ctx.expect("events confirmed", await queue.confirm_outbox_events(first.token, [*ids, "no-event"])).equals(1)
    ctx.expect("events confirmed again", await queue.confirm_outbox_events(first.token, ids)).equals(0)
    ctx.expect("events of no token", await queue.confirm_outbox_events("no-token", ids)).equals(0)
    ctx.expect("no events", await queue.confirm_outbox_events(second.token, [])).equals(0)
    ctx.expect("events of the second lease", await queue.confirm_outbox_events(second.token, ids)).equals(1)


@clause(
    "WP-LEASE-07",
    MUST,
    text="release_outbox_lease gives the events that were not confirmed back at once.",
    why="A relay that stops in good order would hold its runs up until the lease ends.",
    hints=["Confirmed events stay published; an unknown token is no error."],
    needs=_NEEDS,
    after=["WP-LEASE-02"],
)
async def released(ctx: Context[WorkflowPersistence]) -> None:
    (run_id,) = await _append(ctx, 1, 3)
    lease = await _lease(ctx)
    queue = ctx.capability(SupportsOutboxLease)
    await queue.confirm_outbox_events(lease.token, [lease.events[0].id])
    await queue.release_outbox_lease("no-token")
    ctx.expect("events claimed before", await ctx.adapter.claim_unpublished_outbox_events()).is_empty()
    await queue.release_outbox_lease(lease.token)
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed after", _places(claimed)).equals([(run_id, 2), (run_id, 3)])


@clause(
    "WP-LEASE-08",
    MUST,
    text="Leases taken at once never share an event, nor a run.",
    why="Two relays would send one run's events in an order of their own.",
    hints=["Lock the run's first row; skip the run when that is held."],
    needs=_NEEDS,
    after=["WP-LEASE-02"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    runs = await _append(ctx, 10, 4)
    queues = [ctx.capability(SupportsOutboxLease, adapter) for adapter in adapters]
    for _ in range(6):
        leases = await ctx.together(*(partial(queue.lease_outbox_events, 6) for queue in queues))
        leases += [await _lease(ctx)]
        held = [{one.workflow_run_id for one in lease.events} for lease in leases]
        ctx.expect("runs held, over all leases", sum(len(each) for each in held)).equals(len(set[str]().union(*held)))
        ctx.expect("runs held by nobody", set(runs) - set[str]().union(*held)).is_empty()
        for lease in leases:
            await queues[0].release_outbox_lease(lease.token)


@clause(
    "WP-LEASE-09",
    MUST,
    text="A lease lasts 30 seconds unless it is told otherwise, and takes 100 events.",
    why="Relays are written for the default; a shorter lease sends everything twice.",
    hints=["Milliseconds and seconds are easily confused."],
    needs=_TIMED,
    after=["WP-LEASE-04"],
)
async def by_default(ctx: Context[WorkflowPersistence]) -> None:
    await _append(ctx, 1, 101)
    lease = await ctx.capability(SupportsOutboxLease).lease_outbox_events()
    ctx.expect("expires_at", lease.expires_at).equals(ctx.now() + timedelta(seconds=30))
    ctx.expect("events leased", lease.events).has_length(100)
