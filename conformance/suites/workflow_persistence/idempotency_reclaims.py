"""Idempotency keys whose owner does not come back: reclaiming them by age."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, MS
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import Acquired, InProgress, Replay

_CLOCK: Final = Requires("clock", "caller")
_NOW: Final = timedelta(0)


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
    "WP-TIME-04",
    MUST,
    text="A negative stale_in_progress_after is refused.",
    why="It would take keys from their owners before they have begun.",
    hints=["Negative spans mean something to the two lease sweeps only."],
)
async def negative_limit(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    with ctx.raises(InvalidValueError, "acquire_idempotency_key", field="stale_in_progress_after"):
        await ctx.adapter.acquire_idempotency_key(key, "t", stale_in_progress_after=-MS)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(InProgress())


@clause(
    "WP-TIME-05",
    MUST,
    text="A stale_in_progress_after of any length is taken: the longest reclaims nothing.",
    why="Hosts switch the reclaim off with a very long span; an overflow fails the command.",
    hints=["now minus the span may lie before the first instant there is: compare ages instead."],
    after=["WP-IDEM-02"],
)
async def longest_limit(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    again = await ctx.adapter.acquire_idempotency_key(key, "t", stale_in_progress_after=timedelta.max)
    ctx.expect("a second acquire", again).equals(InProgress())
