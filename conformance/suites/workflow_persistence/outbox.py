"""The outbox: appending events, and reading those that are not published."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from conformance.builders import event
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxRecord

_TIME: Final = timedelta(seconds=20)


async def _unpublished(ctx: Context[WorkflowPersistence], run_id: str) -> list[OutboxRecord]:
    listed = await ctx.adapter.get_unpublished_outbox_events(100_000)
    return [one for one in listed if one.workflow_run_id == run_id]


async def _sequences(ctx: Context[WorkflowPersistence], run_id: str) -> list[int]:
    return [one.sequence for one in await _unpublished(ctx, run_id)]


def _numbered(count: int) -> list[int]:
    return list(range(1, count + 1))


@clause(
    "WP-OUT-01",
    MUST,
    text="Events of a run are numbered 1, 2, 3, … in the order of the call, and on from there in the next.",
    why="Consumers detect gaps and duplicates by the number, and apply events in its order.",
    hints=["The next number follows the run's highest, published and dead ones included."],
)
async def numbered(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id, "c"), event(run_id, "a"), event(run_id, "b")])
    await ctx.adapter.append_outbox_events([event(run_id, "d")])
    listed = [(one.sequence, one.event_type) for one in await _unpublished(ctx, run_id)]
    ctx.expect("sequences and types", listed).equals([(1, "c"), (2, "a"), (3, "b"), (4, "d")])


@clause(
    "WP-OUT-02",
    MUST,
    text="An event keeps every field that it was given, and starts unpublished, alive and without retries.",
    why="Consumers get what was appended, nothing else; a fresh event that looks published is never sent.",
    hints=["occurred_at is the caller's instant, not the time of the insert."],
    after=["WP-OUT-01"],
)
async def every_field(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    fields: dict[str, Any] = {
        "event_type": "stage.completed",
        "payload": {"stage": "build", "n": [1]},
        "causation_id": "command-7",
        "occurred_at": ctx.now() - 10 * HOUR,
    }
    await ctx.adapter.append_outbox_events([event(run_id, **fields)])
    (stored,) = ctx.expect("events", await _unpublished(ctx, run_id)).has_length(1)
    for name, value in fields.items():
        ctx.expect(name, getattr(stored, name)).equals(value)
    ctx.expect("retry_count", stored.retry_count).equals(0)
    ctx.expect("published_at", stored.published_at).is_none()
    ctx.expect("dlq_at", stored.dlq_at).is_none()


@clause(
    "WP-OUT-03",
    MUST,
    text="Each run has its own numbers, also where one call appends for several runs.",
    why="One counter for all runs leaves gaps in each of them.",
    hints=["Number within the run, in the order in which the call has its events."],
    after=["WP-OUT-01"],
)
async def per_run(ctx: Context[WorkflowPersistence]) -> None:
    first, second = ctx.new_id("run"), ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(first, "a1")])
    batch = [event(second, "b1"), event(first, "a2"), event(second, "b2"), event(first, "a3")]
    await ctx.adapter.append_outbox_events(batch)
    found = {run: [(one.sequence, one.event_type) for one in await _unpublished(ctx, run)] for run in (first, second)}
    ctx.expect("events of the first run", found[first]).equals([(1, "a1"), (2, "a2"), (3, "a3")])
    ctx.expect("events of the second run", found[second]).equals([(1, "b1"), (2, "b2")])


@clause(
    "WP-OUT-04",
    MUST,
    text="Events can be appended for a run that is not stored.",
    why="A purge deletes runs whose events still have to be published.",
    hints=["No foreign key leads from the outbox to the runs."],
    after=["WP-OUT-01"],
)
async def no_run(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("no-run")
    await ctx.adapter.append_outbox_events([event(run_id)])
    ctx.expect("the run", await ctx.adapter.get_run(run_id)).is_none()
    ctx.expect("sequences", await _sequences(ctx, run_id)).equals([1])


@clause(
    "WP-OUT-05",
    MUST,
    text="Appending no events does nothing.",
    why="A command without events is no error.",
    hints=["Return before an empty statement."],
)
async def nothing(ctx: Context[WorkflowPersistence]) -> None:
    ctx.expect("append_outbox_events of nothing", await ctx.adapter.append_outbox_events([])).is_none()


@clause(
    "WP-OUT-06",
    MUST,
    text="Numbers go on after events that are published or dead letters.",
    why="A number that is given twice makes consumers drop the second event as a duplicate.",
    hints=["MAX over all of the run's rows, not over the unpublished ones."],
    after=["WP-OUT-01", "WP-FLUSH-01", "WP-DLQ-01"],
)
async def after_published_ones(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id), event(run_id)])
    await ctx.adapter.mark_outbox_events_published([one.id for one in await _unpublished(ctx, run_id)])
    await ctx.adapter.append_outbox_events([event(run_id)])
    ctx.expect("sequences after published ones", await _sequences(ctx, run_id)).equals([3])
    [third] = await _unpublished(ctx, run_id)
    await ctx.adapter.move_outbox_event_to_dlq(third.id)
    await ctx.adapter.append_outbox_events([event(run_id)])
    ctx.expect("sequences after a dead letter", await _sequences(ctx, run_id)).equals([4])


@clause(
    "WP-OUT-07",
    MUST,
    text="However many writers append to one run at once, its numbers are 1, 2, 3, … without gap or duplicate.",
    why="MAX + 1 in two snapshots is the same number: a lost event, or a transaction that fails for it.",
    hints=[
        "Take a lock on the run that lasts until commit, and read the highest number in a later statement.",
        "The unique key on (run, sequence) is the backstop; retry without harming the caller's transaction.",
    ],
    after=["WP-OUT-01"],
    time_limit=_TIME,
)
async def racing_for_one_run(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 4
    run_id = ctx.new_id("run")
    for _ in range(3):
        batch = [event(run_id), event(run_id)]
        await ctx.together(*(partial(adapter.append_outbox_events, batch) for adapter in adapters))
    ctx.expect("sequences", await _sequences(ctx, run_id)).equals(_numbered(3 * 2 * len(adapters)))


@clause(
    "WP-OUT-08",
    MUST,
    text="Writers that append for the same runs in opposite order do not deadlock one another.",
    why="Fan-in stages append for many runs at once; a deadlock costs one of them its whole command.",
    hints=["Lock the runs in one order: bytewise by id."],
    after=["WP-OUT-07"],
    time_limit=_TIME,
)
async def opposite_orders(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(2) * 3
    runs = [ctx.new_id("run") for _ in range(8)]

    def batch(order: Sequence[str]) -> list[Any]:
        return [event(run_id) for run_id in order]

    for _ in range(4):
        calls = [
            partial(adapter.append_outbox_events, batch(runs if place % 2 else runs[::-1]))
            for place, adapter in enumerate(adapters)
        ]
        await ctx.together(*calls)
    for run_id in runs:
        ctx.expect("sequences of one run", await _sequences(ctx, run_id)).equals(_numbered(4 * len(adapters)))


@clause(
    "WP-OUT-09",
    MUST,
    text="One call appends 5,000 events and numbers them in its order.",
    why="A large fan-out must not meet the database's limit of bound parameters half-way.",
    hints=["Pass arrays, or work in chunks inside one transaction."],
    after=["WP-OUT-01"],
    time_limit=_TIME,
)
async def large_batch(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id, payload=number) for number in _numbered(5_000)])
    listed = await _unpublished(ctx, run_id)
    ctx.expect("sequences", [one.sequence for one in listed]).equals(_numbered(5_000))
    ctx.expect("payloads", [one.payload for one in listed]).equals(_numbered(5_000))


@clause(
    "WP-OUT-10",
    MUST,
    text="Unpublished events are listed by run, byte by byte, and by sequence as a number.",
    why="A relay that reads them in another order publishes effects before their causes.",
    hints=['ORDER BY run, sequence; COLLATE "C" where the collation of the database is another.'],
    after=["WP-OUT-01"],
)
async def order(ctx: Context[WorkflowPersistence]) -> None:
    stem = ctx.new_id("run")
    runs = [f"{stem}{tail}" for tail in ("b", "B", "a", "\u00e9", "_")]
    await ctx.adapter.append_outbox_events([event(run_id) for _ in range(11) for run_id in runs])
    listed = [(one.workflow_run_id, one.sequence) for one in await ctx.adapter.get_unpublished_outbox_events()]
    ctx.expect("runs and sequences", listed).equals([(run, n) for run in sorted(runs) for n in _numbered(11)])


@clause(
    "WP-OUT-11",
    MUST,
    text="At most `limit` unpublished events are listed, the first ones in the order; 100 by default.",
    why="A relay pages by publishing what it got; a limit that skips the first ones breaks the order.",
    hints=["ORDER BY before LIMIT."],
    after=["WP-OUT-10"],
)
async def limit(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id) for _ in range(101)])
    listed = await ctx.adapter.get_unpublished_outbox_events()
    ctx.expect("sequences by default", [one.sequence for one in listed]).equals(_numbered(100))
    listed = await ctx.adapter.get_unpublished_outbox_events(3)
    ctx.expect("sequences with a limit of 3", [one.sequence for one in listed]).equals(_numbered(3))
    ctx.expect("events with a limit of 0", await ctx.adapter.get_unpublished_outbox_events(0)).is_empty()


@clause(
    "WP-OUT-12",
    MUST,
    text="Listing unpublished events publishes none of them.",
    why="Looking at the backlog would lose it.",
    hints=["A plain SELECT."],
    after=["WP-OUT-01"],
)
async def a_plain_read(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id)])
    first = await ctx.adapter.get_unpublished_outbox_events()
    ctx.expect("the second listing", await ctx.adapter.get_unpublished_outbox_events()).equals(first)
