"""Which events a claim selects: runs in rotation, each in its order."""

from __future__ import annotations

from collections import Counter

from conformance.builders import event
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.outbox import OutboxRecord


async def _append(ctx: Context[WorkflowPersistence], runs: int, each: int) -> list[str]:
    """Append events numbered from 1 for fresh runs, whose ids sort in the order of the list."""
    ids = [ctx.new_id("run") for _ in range(runs)]
    await ctx.adapter.append_outbox_events([event(run_id) for run_id in ids for _ in range(each)])
    return ids


def _places(events: list[OutboxRecord]) -> list[tuple[str, int]]:
    return [(one.workflow_run_id, one.sequence) for one in events]


@clause(
    "WP-FLUSH-04",
    MUST,
    text="Of one run the first events are claimed first: an event never before an earlier one of its run.",
    why="Consumers would see a stage complete before it started.",
    hints=["Take a prefix of the run's unpublished events."],
    after=["WP-FLUSH-01"],
)
async def prefix(ctx: Context[WorkflowPersistence]) -> None:
    (run_id,) = await _append(ctx, 1, 5)
    taken: list[tuple[str, int]] = []
    for _ in range(3):
        taken += _places(await ctx.adapter.claim_unpublished_outbox_events(2))
    ctx.expect("events claimed", taken).equals([(run_id, n) for n in (1, 2, 3, 4, 5)])


@clause(
    "WP-FLUSH-05",
    MUST,
    text="A claim takes from each run its first event, then from each its second, until the limit.",
    why="A run with thousands of events would keep all others waiting.",
    hints=["ROW_NUMBER per run, ordered by that number first."],
    after=["WP-FLUSH-04"],
)
async def round_robin(ctx: Context[WorkflowPersistence]) -> None:
    runs = await _append(ctx, 3, 4)
    first = Counter(one.workflow_run_id for one in await ctx.adapter.claim_unpublished_outbox_events(3))
    ctx.expect("events per run with a limit of 3", dict(first)).equals(dict.fromkeys(runs, 1))
    second = Counter(one.workflow_run_id for one in await ctx.adapter.claim_unpublished_outbox_events(5))
    ctx.expect("events per run with a limit of 5", sorted(second.values())).equals([1, 2, 2])


@clause(
    "WP-FLUSH-06",
    MUST,
    text="Successive claims go on with the next run, and start over after the last.",
    why="With a small limit the runs at the front would be served for ever, those behind never.",
    hints=["Keep a cursor over run ids in the process; wrap around."],
    after=["WP-FLUSH-05"],
)
async def rotation(ctx: Context[WorkflowPersistence]) -> None:
    runs = await _append(ctx, 4, 4)
    served = [(await ctx.adapter.claim_unpublished_outbox_events(1))[0].workflow_run_id for _ in range(9)]
    ctx.expect("runs served by the first four claims", sorted(served[:4])).equals(runs)
    ctx.expect("runs served by the next four claims", served[4:8]).equals(served[:4])
    rest = await ctx.adapter.claim_unpublished_outbox_events()
    ctx.expect("events of one claim of all that is left", rest).has_length(7)


@clause(
    "WP-FLUSH-07",
    MUST,
    text="A run whose events are given back again and again does not keep the others from being served.",
    why="One receiver that is down would stop the events of everybody.",
    hints=["The cursor moves on whether or not the events were published."],
    after=["WP-FLUSH-06", "WP-FLUSH-09"],
)
async def failing_run(ctx: Context[WorkflowPersistence]) -> None:
    runs = await _append(ctx, 3, 2)
    failing, served = runs[0], list[tuple[str, int]]()
    for _ in range(12):
        claimed = await ctx.adapter.claim_unpublished_outbox_events(1)
        if [one.workflow_run_id for one in claimed] == [failing]:
            await ctx.adapter.release_outbox_events([one.id for one in claimed])
        else:
            served += _places(claimed)
    expected = [(run_id, number) for run_id in runs[1:] for number in (1, 2)]
    ctx.expect("events of the other runs", sorted(served)).equals(expected)
