"""Fences of idempotency keys: each names one acquisition for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone
from typing import Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MS
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import Acquired, IdempotencyFence, InProgress, Replay
from workflow_adapters.records.status import JobAckOutcome

_NOW: Final = timedelta(0)
_HELD: Final = JobAckOutcome.ACKNOWLEDGED
_LOST: Final = JobAckOutcome.SUPERSEDED


async def _acquire(ctx: Context[WorkflowPersistence], key: str, stale: timedelta | None = None) -> IdempotencyFence:
    outcome = await ctx.adapter.acquire_idempotency_key(key, "t", stale_in_progress_after=stale)
    return ctx.expect("the outcome of acquire", outcome).is_a(Acquired).fence


@clause(
    "WP-IDEM-21",
    MUST,
    text="With the fence of the acquisition that holds the key, complete stores the result.",
    why="The owner could not finish.",
    hints=["Compare row id and created_at as they were handed out: to the millisecond, in UTC."],
    after=["WP-IDEM-03"],
)
async def completes(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    fence = await _acquire(ctx, key)
    ctx.expect("complete", await ctx.adapter.complete_idempotency_key(key, "t", 1, fence)).equals(_HELD)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(Replay(1))


@clause(
    "WP-IDEM-22",
    MUST,
    text="With the fence of the acquisition that holds the key, release gives it back.",
    why="The owner could not let go.",
    hints=["DELETE … WHERE id and created_at match and the row is in progress."],
    after=["WP-IDEM-13"],
)
async def releases(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    fence = await _acquire(ctx, key)
    ctx.expect("release", await ctx.adapter.release_idempotency_key(key, "t", fence)).equals(_HELD)
    await _acquire(ctx, key)


@clause(
    "WP-IDEM-23",
    MUST,
    text="An owner whose key was reclaimed can not complete it: SUPERSEDED, and nothing is written.",
    why="It would overwrite the answer of its successor.",
    hints=["created_at is part of the condition."],
    after=["WP-IDEM-21", "WP-IDEM-08"],
)
async def complete_after_a_reclaim(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    lost, held = await _acquire(ctx, key), await _acquire(ctx, key, _NOW)
    ctx.expect("complete of the first owner", await ctx.adapter.complete_idempotency_key(key, "t", 1, lost)).equals(
        _LOST
    )
    ctx.expect("an acquire then", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(InProgress())
    ctx.expect("complete of the second owner", await ctx.adapter.complete_idempotency_key(key, "t", 2, held)).equals(
        _HELD
    )
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(Replay(2))


@clause(
    "WP-IDEM-24",
    MUST,
    text="An owner whose key was reclaimed can not release it: SUPERSEDED, and the successor keeps it.",
    why="A third caller would run the command beside the second.",
    hints=["created_at is part of the condition."],
    after=["WP-IDEM-22", "WP-IDEM-08"],
)
async def release_after_a_reclaim(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    lost = await _acquire(ctx, key)
    await _acquire(ctx, key, _NOW)
    ctx.expect("release of the first owner", await ctx.adapter.release_idempotency_key(key, "t", lost)).equals(_LOST)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(InProgress())


@clause(
    "WP-IDEM-25",
    MUST,
    text="A reclaim's fence is later than the one before, also when both happen at one instant.",
    why="Two acquisitions with one fence are one to the adapter: the late owner gets through.",
    hints=["max(now, created_at + 1 ms)."],
    after=["WP-IDEM-08"],
)
async def strictly_later(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    fence = await _acquire(ctx, key)
    for number in range(1, 4):
        again = await ctx.adapter.acquire_idempotency_key(key, "t", fence.acquired_at, _NOW)
        reclaimed = ctx.expect(f"the outcome of reclaim {number}", again).is_a(Acquired).fence
        ctx.expect(f"acquired_at of reclaim {number}", reclaimed.acquired_at).is_greater_than(fence.acquired_at)
        fence = reclaimed


@clause(
    "WP-IDEM-26",
    MUST,
    text="The fence of a released acquisition does not hold a later one of the same key, even of the same instant.",
    why="A late owner would complete a stranger's run of the command.",
    hints=["A release deletes the row: the next one has a new id."],
    after=["WP-IDEM-22"],
)
async def a_release_makes_a_new_row(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    old = await _acquire(ctx, key)
    await ctx.adapter.release_idempotency_key(key, "t", old)
    new = await _acquire(ctx, key)
    ctx.expect("the new fence", new).differs_from(old)
    ctx.expect("complete with the old fence", await ctx.adapter.complete_idempotency_key(key, "t", 1, old)).equals(
        _LOST
    )
    ctx.expect("release with the old fence", await ctx.adapter.release_idempotency_key(key, "t", old)).equals(_LOST)
    ctx.expect("release with the new fence", await ctx.adapter.release_idempotency_key(key, "t", new)).equals(_HELD)


@clause(
    "WP-IDEM-27",
    MUST,
    text="A fence of a key that is gone, or of a key that is completed, is SUPERSEDED for both calls.",
    why="A retry after a lost reply would fail, or overwrite the stored result.",
    hints=["A missing row is no NotFoundError when there is a fence.", "The row must be in progress."],
    after=["WP-IDEM-21", "WP-IDEM-22"],
)
async def gone_or_completed(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    fence = await _acquire(ctx, key)
    await ctx.adapter.release_idempotency_key(key, "t")
    ctx.expect("complete of a missing key", await ctx.adapter.complete_idempotency_key(key, "t", 1, fence)).equals(
        _LOST
    )
    ctx.expect("release of a missing key", await ctx.adapter.release_idempotency_key(key, "t", fence)).equals(_LOST)
    fence = await _acquire(ctx, key)
    await ctx.adapter.complete_idempotency_key(key, "t", 1, fence)
    again = await ctx.adapter.complete_idempotency_key(key, "t", 2, fence)
    ctx.expect("complete of a completed key", again).equals(_LOST)
    ctx.expect("release of a completed key", await ctx.adapter.release_idempotency_key(key, "t", fence)).equals(_LOST)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(Replay(1))


@clause(
    "WP-IDEM-28",
    MUST,
    text="Without a fence complete and release act on whoever holds the key.",
    why="Hosts of the older contract have no fence, and must be able to finish.",
    hints=["No fence, no condition on created_at."],
    after=["WP-IDEM-08"],
)
async def without_a_fence(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await _acquire(ctx, key)
    await _acquire(ctx, key, _NOW)
    ctx.expect("release", await ctx.adapter.release_idempotency_key(key, "t")).equals(_HELD)
    await _acquire(ctx, key)
    await _acquire(ctx, key, _NOW)
    ctx.expect("complete", await ctx.adapter.complete_idempotency_key(key, "t", 1)).equals(_HELD)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(Replay(1))


@clause(
    "WP-IDEM-29",
    MUST,
    text="A fence is compared by row and instant: another instant or another row is SUPERSEDED, another zone is not.",
    why="A fence goes through JSON and comes back in another zone; one that is off by a millisecond is another's.",
    hints=["Both parts are in the WHERE; instants are compared as instants."],
    after=["WP-IDEM-21"],
)
async def both_parts(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    fence = await _acquire(ctx, key)
    others = {
        "an earlier instant": replace(fence, acquired_at=fence.acquired_at - MS),
        "a later instant": replace(fence, acquired_at=fence.acquired_at + HOUR),
        "another row": replace(fence, id=ctx.new_id("row")),
    }
    for shown, other in others.items():
        outcome = await ctx.adapter.complete_idempotency_key(key, "t", 1, other)
        ctx.expect(f"complete with {shown}", outcome).equals(_LOST)
    elsewhere = replace(fence, acquired_at=fence.acquired_at.astimezone(timezone(timedelta(hours=-9))))
    ctx.expect("complete with another zone", await ctx.adapter.complete_idempotency_key(key, "t", 1, elsewhere)).equals(
        _HELD
    )
