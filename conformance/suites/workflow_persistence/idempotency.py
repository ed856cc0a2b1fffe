"""Idempotency keys: acquiring, replaying, reclaiming."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, MS
from workflow_adapters.errors import InvalidValueError, NotFoundError
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import Acquired, InProgress, Replay
from workflow_adapters.records.status import JobAckOutcome

_CLOCK: Final = Requires("clock", "caller")
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


@clause(
    "WP-IDEM-06",
    MUST,
    text="A held key is reclaimed when it is as old as the given limit, and not a millisecond earlier.",
    why="After a crash the command could never run again; too early it runs twice.",
    hints=["now - created_at >= stale_in_progress_after, with the caller's now."],
    needs=[_CLOCK],
    after=["WP-IDEM-02"],
)
async def reclaimed(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "order.create")
    await ctx.advance(MINUTE - MS)
    early = await ctx.adapter.acquire_idempotency_key(key, "order.create", stale_in_progress_after=MINUTE)
    ctx.expect("an acquire a millisecond early", early).equals(InProgress())
    await ctx.advance(MS)
    in_time = await ctx.adapter.acquire_idempotency_key(key, "order.create", stale_in_progress_after=MINUTE)
    ctx.expect("an acquire at the limit", in_time).is_a(Acquired)


@clause(
    "WP-IDEM-07",
    MUST,
    text="The age of a key is judged by the `now` that the caller gives, at the acquisition and at the reclaim.",
    why="Hosts have one clock of their own; a second one makes keys stale at once, or never.",
    hints=["Store `now` as created_at; compare with `now`."],
    after=["WP-IDEM-02"],
)
async def the_callers_now(ctx: Context[WorkflowPersistence]) -> None:
    key, start = ctx.new_id("key"), ctx.now() - 500 * HOUR
    await ctx.adapter.acquire_idempotency_key(key, "t", start)
    early = await ctx.adapter.acquire_idempotency_key(key, "t", start + MINUTE - MS, MINUTE)
    ctx.expect("an acquire before the limit", early).equals(InProgress())
    in_time = await ctx.adapter.acquire_idempotency_key(key, "t", start + MINUTE, MINUTE)
    fence = ctx.expect("an acquire at the limit", in_time).is_a(Acquired).fence
    ctx.expect("acquired_at of the fence", fence.acquired_at).equals(start + MINUTE)


@clause(
    "WP-IDEM-08",
    MUST,
    text="A reclaim starts the key's age anew.",
    why="A second crash-recovery would take the key from the one that has just begun.",
    hints=["The reclaim writes created_at."],
    after=["WP-IDEM-07"],
)
async def restarts_the_clock(ctx: Context[WorkflowPersistence]) -> None:
    key, start = ctx.new_id("key"), ctx.now()
    await ctx.adapter.acquire_idempotency_key(key, "t", start)
    await ctx.adapter.acquire_idempotency_key(key, "t", start + HOUR, HOUR)
    again = await ctx.adapter.acquire_idempotency_key(key, "t", start + HOUR + MINUTE, HOUR)
    ctx.expect("an acquire a minute after the reclaim", again).equals(InProgress())


@clause(
    "WP-IDEM-09",
    MUST,
    text="A completed key is never reclaimed, however old.",
    why="The command would run again when a client retries a week later.",
    hints=["The reclaim's condition is the in-progress marker."],
    after=["WP-IDEM-03"],
)
async def never_a_completed_one(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t", ctx.now() - 1_000 * HOUR)
    await ctx.adapter.complete_idempotency_key(key, "t", {"done": True})
    again = await ctx.adapter.acquire_idempotency_key(key, "t", ctx.now(), _NOW)
    ctx.expect("an acquire weeks later", again).equals(Replay({"done": True}))


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
    "WP-IDEM-11",
    MUST,
    text="Of several callers that reclaim a stale key at once exactly one gets it.",
    why="After a crash every worker finds the key stale at the same moment.",
    hints=["The reclaim compares created_at with what was read: a compare-and-set."],
    after=["WP-IDEM-08"],
)
async def racing_to_reclaim(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 3
    start = ctx.now()
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t", start)
    for number in range(1, 6):
        now = start + number * HOUR
        outcomes = await ctx.together(*(partial(one.acquire_idempotency_key, key, "t", now, HOUR) for one in adapters))
        ctx.expect("Acquired outcomes", sum(isinstance(one, Acquired) for one in outcomes)).equals(1)


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
