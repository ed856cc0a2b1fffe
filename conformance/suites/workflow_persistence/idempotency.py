"""Idempotency keys: acquiring, replaying, reclaiming."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.values import ALIKE
from conformance.suites.workflow_persistence.scenes import HOUR
from workflow_adapters.errors import InvalidValueError, NotFoundError
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import Acquired, InProgress, Replay
from workflow_adapters.records.status import JobAckOutcome

_NOW: Final = timedelta(0)


@clause(
    "WP-IDEM-01",
    MUST,
    text="A key that nobody holds is Acquired, with a fence.",
    why="The command would never run.",
    hints=["INSERT … ON CONFLICT DO NOTHING RETURNING."],
)
async def acquired(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    outcome = await ctx.adapter.acquire_idempotency_key(key, "order.create")
    fence = ctx.expect("the outcome", outcome).is_a(Acquired).fence
    ctx.expect_now("acquired_at of the fence", fence.acquired_at)


@clause(
    "WP-IDEM-02",
    MUST,
    text="A key that is held is InProgress for everybody else, for however long, unless a limit is given.",
    why="The command would run twice at once.",
    hints=["Without stale_in_progress_after nothing is reclaimed."],
    after=["WP-IDEM-01"],
)
async def in_progress(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "order.create")
    again = await ctx.adapter.acquire_idempotency_key(key, "order.create")
    ctx.expect("a second acquire", again).equals(InProgress())
    later = await ctx.adapter.acquire_idempotency_key(key, "order.create", ctx.now() + 1_000 * HOUR)
    ctx.expect("an acquire weeks later", later).equals(InProgress())


@clause(
    "WP-IDEM-03",
    MUST,
    text="A completed key replays its result.",
    why="The caller that retries must get the answer of the first time.",
    hints=["The result is JSON, exactly as it was given."],
    after=["WP-IDEM-01"],
)
async def replay(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "order.create")
    result: JsonValue = {"id": 7, "lines": [1.5, None]}
    outcome = await ctx.adapter.complete_idempotency_key(key, "order.create", result)
    ctx.expect("complete", outcome).equals(JobAckOutcome.ACKNOWLEDGED)
    for _ in range(2):
        again = await ctx.adapter.acquire_idempotency_key(key, "order.create")
        ctx.expect("the result replayed", ctx.expect("the outcome", again).is_a(Replay).result).equals(result)


@clause(
    "WP-IDEM-04",
    MUST,
    text="None is a result: it replays as None.",
    why="A command that answers nothing would run again on each retry, or hang as in progress.",
    hints=["The in-progress marker is not NULL."],
    after=["WP-IDEM-03"],
)
async def none_is_a_result(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "order.create")
    await ctx.adapter.complete_idempotency_key(key, "order.create", None)
    again = await ctx.adapter.acquire_idempotency_key(key, "order.create", stale_in_progress_after=_NOW)
    ctx.expect("an acquire of the completed key", again).equals(Replay(None))


@clause(
    "WP-IDEM-05",
    MUST,
    text="One key under two command types is two keys.",
    why="Clients use one id for a request that leads to several commands.",
    hints=["The unique key is (key, command_type)."],
    after=["WP-IDEM-03"],
)
async def scoped_by_command(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "a")
    ctx.expect("another command's acquire", await ctx.adapter.acquire_idempotency_key(key, "b")).is_a(Acquired)
    await ctx.adapter.complete_idempotency_key(key, "a", 1)
    ctx.expect("the other command", await ctx.adapter.acquire_idempotency_key(key, "b")).equals(InProgress())
    await ctx.adapter.release_idempotency_key(key, "b")
    ctx.expect("the completed command", await ctx.adapter.acquire_idempotency_key(key, "a")).equals(Replay(1))
    for pair in ALIKE:
        ctx.expect(f"the first acquire of {pair}", await ctx.adapter.acquire_idempotency_key(*pair)).is_a(Acquired)


@clause(
    "WP-IDEM-10",
    MUST,
    text="Of several callers that acquire a key at once exactly one gets it; the others are told InProgress.",
    why="This is what idempotency keys are for.",
    hints=["The unique key decides; when the winner's row is not visible yet, read again."],
    after=["WP-IDEM-02"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 3
    for _ in range(5):
        key = ctx.new_id("key")
        outcomes = await ctx.together(*(partial(one.acquire_idempotency_key, key, "t") for one in adapters))
        ctx.expect("Acquired outcomes", sum(isinstance(one, Acquired) for one in outcomes)).equals(1)
        ctx.expect("InProgress outcomes", outcomes.count(InProgress())).equals(len(adapters) - 1)


@clause(
    "WP-IDEM-12",
    MUST,
    text="Completing a key that does not exist, without a fence, raises NotFoundError.",
    why="The result would be stored nowhere, and the command would run again.",
    hints=["No row updated: NotFoundError."],
)
async def complete_unknown(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    with ctx.raises(NotFoundError, "complete_idempotency_key of an unknown key"):
        await ctx.adapter.complete_idempotency_key(key, "t", 1)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).is_a(Acquired)


@clause(
    "WP-IDEM-13",
    MUST,
    text="A released key can be acquired again at once.",
    why="A command that failed has to be retried under the same key.",
    hints=["The release deletes the row."],
    after=["WP-IDEM-02"],
)
async def released(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    outcome = await ctx.adapter.release_idempotency_key(key, "t")
    ctx.expect("release", outcome).equals(JobAckOutcome.ACKNOWLEDGED)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).is_a(Acquired)


@clause(
    "WP-IDEM-14",
    MUST,
    text="Releasing a completed or unknown key, without a fence, changes nothing and is ACKNOWLEDGED.",
    why="Cleanup after an error that came too late would throw the result away.",
    hints=["DELETE … WHERE the row is in progress; no row is fine."],
    after=["WP-IDEM-03"],
)
async def release_of_a_completed_one(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    for shown in ("an unknown key", "a completed key"):
        outcome = await ctx.adapter.release_idempotency_key(key, "t")
        ctx.expect(f"release of {shown}", outcome).equals(JobAckOutcome.ACKNOWLEDGED)
        again = await ctx.adapter.acquire_idempotency_key(key, "t")
        expected = Replay(1) if shown == "a completed key" else again
        ctx.expect(f"an acquire after the release of {shown}", again).equals(expected)
        await ctx.adapter.complete_idempotency_key(key, "t", 1)


@clause(
    "WP-IDEM-15",
    MUST,
    text="A result that looks like the in-progress marker is refused, and the key stays in progress.",
    why="The key would look held for ever, though the command has answered.",
    hints=["Refuse an object with the marker's member, before the statement."],
    after=["WP-IDEM-02"],
)
async def marker(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    with ctx.raises(InvalidValueError, "complete with the marker as the result", field="result"):
        await ctx.adapter.complete_idempotency_key(key, "t", {"__workflowEngineState": "in_progress"})
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(InProgress())
