"""Claiming events for publishing: who gets which, and giving them back."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from conformance.builders import event
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxRecord

_TIME: Final = timedelta(seconds=20)


async def _append(ctx: Context[WorkflowPersistence], runs: int, each: int) -> list[str]:
    """Append events numbered from 1 for fresh runs, whose ids sort in the order of the list."""
    ids = [ctx.new_id("run") for _ in range(runs)]
    await ctx.adapter.append_outbox_events([event(run_id) for run_id in ids for _ in range(each)])
    return ids


def _places(events: list[OutboxRecord]) -> list[tuple[str, int]]:
    return [(one.workflow_run_id, one.sequence) for one in events]


@clause(
    "WP-FLUSH-01",
    MUST,
    text="A claim takes unpublished events: they are neither listed as unpublished nor claimed again.",
    why="Every event would be published by every relay.",
    hints=["published_at is stamped in the statement that selects."],
    after=["WP-OUT-01"],
)
async def taken(ctx: Context[WorkflowPersistence]) -> None:
    (run_id,) = await _append(ctx, 1, 3)
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed", _places(claimed)).equals([(run_id, 1), (run_id, 2), (run_id, 3)])
    ctx.expect("unpublished events", await ctx.adapter.get_unpublished_outbox_events()).is_empty()
    ctx.expect("a second claim", await ctx.adapter.claim_unpublished_outbox_events()).is_empty()


@clause(
    "WP-FLUSH-02",
    MUST,
    text="Claimed events are listed by run, byte by byte, and by sequence.",
    why="A relay emits in the order of the list.",
    hints=["UPDATE … RETURNING has no order: sort the rows."],
    after=["WP-FLUSH-01"],
)
async def order(ctx: Context[WorkflowPersistence]) -> None:
    stem = ctx.new_id("run")
    runs = [f"{stem}{tail}" for tail in ("b", "B", "a", "\u00e9")]
    await ctx.adapter.append_outbox_events([event(run_id) for _ in range(3) for run_id in runs])
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed", _places(claimed)).equals([(run, n) for run in sorted(runs) for n in (1, 2, 3)])


@clause(
    "WP-FLUSH-03",
    MUST,
    text="A claim takes at most `limit` events, 100 by default, and none with a limit of 0.",
    why="A relay that is handed everything keeps it from the others, and loses it all when it dies.",
    hints=["Stamp the rows that are returned, no more."],
    after=["WP-FLUSH-01"],
)
async def limit(ctx: Context[WorkflowPersistence]) -> None:
    await _append(ctx, 1, 105)
    ctx.expect("events with a limit of 0", await ctx.adapter.claim_unpublished_outbox_events(0)).is_empty()
    ctx.expect("events with a limit of 2", await ctx.adapter.claim_unpublished_outbox_events(2)).has_length(2)
    ctx.expect("events by default", await ctx.adapter.claim_unpublished_outbox_events()).has_length(100)
    ctx.expect("events that are left", await ctx.adapter.get_unpublished_outbox_events()).has_length(3)


@clause(
    "WP-FLUSH-08",
    MUST,
    text="However many relays claim at once, each event goes to exactly one of them.",
    why="Events would be sent twice, or be lost between two relays.",
    hints=["FOR UPDATE SKIP LOCKED inside the claiming UPDATE, or one writer at a time."],
    after=["WP-FLUSH-01"],
    time_limit=_TIME,
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    runs = await _append(ctx, 24, 6)
    taken: list[tuple[str, int]] = []
    for _ in range(12):
        for claimed in await ctx.together(*(lambda a=one: a.claim_unpublished_outbox_events(2) for one in adapters)):
            taken += _places(claimed)
    while claimed := await ctx.adapter.claim_unpublished_outbox_events():
        taken += _places(claimed)
    ctx.expect("events claimed", sorted(taken)).equals([(run, n) for run in sorted(runs) for n in range(1, 7)])


@clause(
    "WP-FLUSH-09",
    MUST,
    text="release_outbox_events makes exactly the named events claimable again, in their old place.",
    why="What could not be sent must be sent later, under the same number.",
    hints=["published_at = NULL; nothing else."],
    after=["WP-FLUSH-01"],
)
async def release(ctx: Context[WorkflowPersistence]) -> None:
    (run_id,) = await _append(ctx, 1, 3)
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    await ctx.adapter.release_outbox_events([claimed[2].id, claimed[0].id])
    unpublished = await ctx.adapter.get_unpublished_outbox_events()
    ctx.expect("unpublished events", _places(unpublished)).equals([(run_id, 1), (run_id, 3)])
    again = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed again", _places(again)).equals([(run_id, 1), (run_id, 3)])


@clause(
    "WP-FLUSH-10",
    MUST,
    text="mark_outbox_events_published takes exactly the named events out of what is unpublished.",
    why="A relay that reads, sends and marks would send for ever.",
    hints=["published_at = now."],
    after=["WP-FLUSH-01"],
)
async def mark(ctx: Context[WorkflowPersistence]) -> None:
    (run_id,) = await _append(ctx, 1, 3)
    listed = await ctx.adapter.get_unpublished_outbox_events()
    await ctx.adapter.mark_outbox_events_published([listed[0].id, listed[2].id])
    unpublished = await ctx.adapter.get_unpublished_outbox_events()
    ctx.expect("unpublished events", _places(unpublished)).equals([(run_id, 2)])
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed", _places(claimed)).equals([(run_id, 2)])


@clause(
    "WP-FLUSH-11",
    MUST,
    text="Releasing or marking no events does nothing, and unknown ids are ignored.",
    why="A purge may have been there; the relay's cleanup must not fail on it.",
    hints=["Neither an empty statement nor NotFoundError."],
    after=["WP-FLUSH-09", "WP-FLUSH-10"],
)
async def empty_and_unknown(ctx: Context[WorkflowPersistence]) -> None:
    await _append(ctx, 1, 1)
    (listed,) = await ctx.adapter.get_unpublished_outbox_events()
    for call in (ctx.adapter.release_outbox_events, ctx.adapter.mark_outbox_events_published):
        ctx.expect("no ids", await call([])).is_none()
        ctx.expect("an unknown id", await call([ctx.new_id("no-event")])).is_none()
    ctx.expect("unpublished events", await ctx.adapter.get_unpublished_outbox_events()).equals([listed])


@clause(
    "WP-FLUSH-12",
    MUST,
    text="release_outbox_events and mark_outbox_events_published take 40,000 ids in one call.",
    why="A relay that comes back after an outage has as many; databases limit the parameters of a statement.",
    hints=["Pass one array, or work in chunks inside one transaction."],
    after=["WP-FLUSH-09", "WP-FLUSH-10"],
    time_limit=_TIME,
)
async def many_ids(ctx: Context[WorkflowPersistence]) -> None:
    await _append(ctx, 1, 2)
    events = await ctx.adapter.get_unpublished_outbox_events()
    ids = [events[0].id, *(f"no-event-{number}" for number in range(39_998)), events[1].id]
    await ctx.adapter.mark_outbox_events_published(ids)
    ctx.expect("unpublished events", await ctx.adapter.get_unpublished_outbox_events()).is_empty()
    await ctx.adapter.release_outbox_events(ids)
    ctx.expect("unpublished events", await ctx.adapter.get_unpublished_outbox_events()).has_length(2)


@clause(
    "WP-FLUSH-13",
    MUST,
    text="A run of which another transaction holds events uncommitted is skipped whole, without waiting for it.",
    why="Later events would overtake those that the other relay is about to send, or hand back.",
    hints=["Lock the run's first unpublished row with SKIP LOCKED, then take the prefix."],
    needs=[Requires("writers", "many")],
    after=["WP-FLUSH-04", "WP-TX-01"],
)
async def held_by_another(ctx: Context[WorkflowPersistence]) -> None:
    other = await ctx.second()
    first, second = await _append(ctx, 2, 3)
    async with ctx.adapter.transaction() as tx:
        held = await tx.claim_unpublished_outbox_events(1)
        held_run = held[0].workflow_run_id
        free_run = second if held_run == first else first
        claimed = await other.claim_unpublished_outbox_events()
        ctx.expect("events claimed meanwhile", _places(claimed)).equals([(free_run, n) for n in (1, 2, 3)])
