"""Retries and dead letters of the outbox."""

from __future__ import annotations

from typing import Final

from conformance.builders import event
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import MINUTE
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxRecord

_CLOCK: Final = Requires("clock", "caller")


async def _events(ctx: Context[WorkflowPersistence], count: int) -> list[OutboxRecord]:
    """Append that many events of one run."""
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id) for _ in range(count)])
    return await ctx.adapter.get_unpublished_outbox_events()


async def _sequences(ctx: Context[WorkflowPersistence]) -> list[int]:
    return [one.sequence for one in await ctx.adapter.get_unpublished_outbox_events()]


@clause(
    "WP-RETRY-01",
    MUST,
    text="increment_outbox_retry_count raises the count by one and returns it.",
    why="The relay decides by it when to give an event up.",
    hints=["UPDATE … SET retry_count = retry_count + 1 RETURNING."],
    after=["WP-OUT-01"],
)
async def counted(ctx: Context[WorkflowPersistence]) -> None:
    first, second = await _events(ctx, 2)
    counts = [await ctx.adapter.increment_outbox_retry_count(first.id) for _ in range(3)]
    ctx.expect("counts returned", counts).equals([1, 2, 3])
    stored = {one.id: one.retry_count for one in await ctx.adapter.get_unpublished_outbox_events()}
    ctx.expect("counts stored", stored).equals({first.id: 3, second.id: 0})


@clause(
    "WP-RETRY-02",
    MUST,
    text="increment_outbox_retry_count of an unknown event raises NotFoundError with its id.",
    why="A count that nobody keeps lets the relay try for ever.",
    hints=["No row back: NotFoundError."],
)
async def unknown(ctx: Context[WorkflowPersistence]) -> None:
    event_id = ctx.new_id("no-event")
    with ctx.raises(NotFoundError, "increment_outbox_retry_count", id=event_id):
        await ctx.adapter.increment_outbox_retry_count(event_id)


@clause(
    "WP-RETRY-03",
    MUST,
    text="Increments at once are all counted, and each returns a count of its own.",
    why="A count that is read and written back loses retries: the event is never given up.",
    hints=["Add in SQL, not in the adapter."],
    after=["WP-RETRY-01"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 3
    (only,) = await _events(ctx, 1)
    counts = await ctx.together(*(lambda a=one: a.increment_outbox_retry_count(only.id) for one in adapters))
    ctx.expect("counts returned", sorted(counts)).equals(list(range(1, len(adapters) + 1)))


@clause(
    "WP-DLQ-01",
    MUST,
    text="A dead letter is neither unpublished nor claimable.",
    why="An event that can not be sent would be tried for ever.",
    hints=["dlq_at IS NULL in both conditions."],
    after=["WP-FLUSH-01"],
)
async def dead(ctx: Context[WorkflowPersistence]) -> None:
    first, second = await _events(ctx, 2)
    await ctx.adapter.move_outbox_event_to_dlq(second.id)
    ctx.expect("sequences that are unpublished", await _sequences(ctx)).equals([1])
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed", [one.id for one in claimed]).equals([first.id])


@clause(
    "WP-DLQ-02",
    MUST,
    text="A dead letter no longer holds up its run: the events after it are claimed.",
    why="One poisoned event would stop its run for ever.",
    hints=["The prefix leaves dead rows out."],
    after=["WP-DLQ-01"],
)
async def successors(ctx: Context[WorkflowPersistence]) -> None:
    first, second, third = await _events(ctx, 3)
    await ctx.adapter.move_outbox_event_to_dlq(first.id)
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed", [one.id for one in claimed]).equals([second.id, third.id])


@clause(
    "WP-DLQ-03",
    MUST,
    text="move_outbox_event_to_dlq of an unknown event raises NotFoundError with its id.",
    why="The relay would believe that it has put the event aside.",
    hints=["No row updated: NotFoundError."],
)
async def unknown_letter(ctx: Context[WorkflowPersistence]) -> None:
    event_id = ctx.new_id("no-event")
    with ctx.raises(NotFoundError, "move_outbox_event_to_dlq", id=event_id):
        await ctx.adapter.move_outbox_event_to_dlq(event_id)


@clause(
    "WP-DLQ-04",
    MUST,
    text="replay_dlq_events makes dead letters claimable again, with no retries counted, under their old sequence.",
    why="After an outage everything is dead; it has to come back as if nothing had been tried.",
    hints=["dlq_at = NULL, published_at = NULL, retry_count = 0."],
    after=["WP-DLQ-01", "WP-RETRY-01"],
)
async def replayed(ctx: Context[WorkflowPersistence]) -> None:
    first, second = await _events(ctx, 2)
    await ctx.adapter.increment_outbox_retry_count(first.id)
    await ctx.adapter.move_outbox_event_to_dlq(first.id)
    ctx.expect("dead letters replayed", await ctx.adapter.replay_dlq_events(10)).equals(1)
    ctx.expect("unpublished events", await ctx.adapter.get_unpublished_outbox_events()).equals([first, second])


@clause(
    "WP-DLQ-05",
    MUST,
    text="A dead letter that was claimed when it died is claimable after a replay.",
    why="Most letters die while they are claimed; with published_at left over they would count as sent.",
    hints=["The replay clears published_at too."],
    after=["WP-DLQ-04"],
)
async def claimed_when_it_died(ctx: Context[WorkflowPersistence]) -> None:
    (only,) = await _events(ctx, 1)
    await ctx.adapter.claim_unpublished_outbox_events()
    await ctx.adapter.move_outbox_event_to_dlq(only.id)
    await ctx.adapter.replay_dlq_events(10)
    claimed = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events claimed", [one.id for one in claimed]).equals([only.id])


@clause(
    "WP-DLQ-06",
    MUST,
    text="A replay takes at most `max_events`, those that have been dead longest first.",
    why="The newest first would leave the oldest dead for as long as new ones die.",
    hints=["ORDER BY dlq_at LIMIT n."],
    needs=[_CLOCK],
    after=["WP-DLQ-04"],
)
async def oldest_first(ctx: Context[WorkflowPersistence]) -> None:
    events = await _events(ctx, 4)
    for place in (2, 0, 3, 1):
        await ctx.adapter.move_outbox_event_to_dlq(events[place].id)
        await ctx.advance(MINUTE)
    ctx.expect("dead letters replayed with a limit of 0", await ctx.adapter.replay_dlq_events(0)).equals(0)
    ctx.expect("dead letters replayed with a limit of 2", await ctx.adapter.replay_dlq_events(2)).equals(2)
    ctx.expect("sequences that are unpublished", await _sequences(ctx)).equals([1, 3])
    ctx.expect("dead letters replayed by the next", await ctx.adapter.replay_dlq_events(10)).equals(2)
    ctx.expect("dead letters replayed with none left", await ctx.adapter.replay_dlq_events(10)).equals(0)


@clause(
    "WP-DLQ-07",
    MUST,
    text="A replay leaves published events and their retry counts alone.",
    why="Sending everything once more is not what was asked for.",
    hints=["WHERE dlq_at IS NOT NULL."],
    after=["WP-DLQ-04"],
)
async def published_ones_stay(ctx: Context[WorkflowPersistence]) -> None:
    first, second = await _events(ctx, 2)
    await ctx.adapter.claim_unpublished_outbox_events()
    await ctx.adapter.move_outbox_event_to_dlq(second.id)
    await ctx.adapter.replay_dlq_events(10)
    ctx.expect("sequences that are unpublished", await _sequences(ctx)).equals([second.sequence])
    ctx.expect("sequence of the published one", first.sequence).equals(1)
