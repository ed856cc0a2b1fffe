"""What a session keeps in its lane: open adapters, and how a clause is prepared, tried and cleared up after."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from anyio.abc import TaskGroup

from conformance.backend import Spec
from conformance.clause import Clause, Options
from conformance.context import Context
from conformance.instance import FixtureError
from conformance.judge import attempt, not_met
from conformance.leaks import Inventory, leftovers
from conformance.outcome import Failure, Outcome, Result
from conformance.places import Place
from conformance.residue import NoAnswerError
from conformance.stand import Stand

OPEN_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 30.0
# What a clause is given on top of its limit to answer its cancellation.
_GRACE_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 1.0
_SETTLE_SECONDS_OF_KNOWN_LEAKS: Final = 0.05
_UNHARMED: Final = frozenset({Outcome.PASS, Outcome.NOT_APPLICABLE})


@dataclass(slots=True)
class Lessons:
    """What trials have shown of the adapter; it outlives the lane in which it was learnt."""

    can_reset: bool = True
    answers_readers: bool = True
    innocent: frozenset[str] = field(default_factory=frozenset[str])
    """Tasks and threads that come up during clauses and go when the adapter is closed."""
    leaking: frozenset[str] = field(default_factory=frozenset[str])
    """Those that do not go."""
    earlier_ids: list[str] = field(default_factory=list[str])
    """Runs and stages of the clause before."""


class Bench:
    """Used inside the lane, but for `until` and `ctx`, by which its session knows how long to wait and for what."""

    def __init__(self, spec: Spec, root: Path, lessons: Lessons) -> None:
        self.until = time.monotonic() + OPEN_SECONDS
        """When whoever waits may give up."""
        self.ctx: Context[Any] | None = None
        """The trial at hand; None before it begins and after it has ended."""
        self._spec = spec
        self._root = root
        self._lessons = lessons
        self._stands: dict[Options, Stand] = {}
        self._baseline = Inventory()

    async def take_baseline(self) -> None:
        self._baseline = Inventory.take(self._root)

    async def trial(self, clause: Clause, place: Place, limit: timedelta, tasks: TaskGroup) -> Result:
        """Prepare the store, try the clause, clear up. FixtureError or ResidueError when it can not be prepared."""
        self.until = time.monotonic() + OPEN_SECONDS
        ctx = await self._prepare(clause, place, tasks)
        self.ctx, self.until = ctx, time.monotonic() + limit.total_seconds() + _GRACE_SECONDS
        result = await attempt(ctx, limit)
        self.ctx, self.until = None, time.monotonic() + CLOSE_SECONDS
        return await self._tidied(ctx, result)

    async def close(self) -> str:
        """Close every adapter and say, in words, what has not gone with them."""
        self.until = time.monotonic() + CLOSE_SECONDS
        await self._close_stands()
        now = Inventory.take(self._root).added_since(self._baseline)
        known = bool(now) and now.kinds() <= self._lessons.leaking
        left = await leftovers(self._baseline, self._root, _SETTLE_SECONDS_OF_KNOWN_LEAKS if known else _SETTLE_SECONDS)
        self._lessons.leaking |= left.kinds()
        await self.take_baseline()
        return left.words()

    async def _prepare(self, clause: Clause, place: Place, tasks: TaskGroup) -> Context[Any]:
        stand = self._stands.setdefault(clause.options, Stand(self._spec, place, clause.options, tasks))
        fixture = await stand.instance(0)
        self._lessons.can_reset = await stand.reset()
        if self._lessons.answers_readers:
            try:
                await stand.refuse_residue(self._lessons.earlier_ids)
            except NoAnswerError:
                # Once is enough: the clauses will say the same in their own words.
                self._lessons.answers_readers = False
        stand.begin()
        ctx: Context[Any] = Context(clause, stand, fixture)
        self._lessons.earlier_ids = ctx.parent_ids
        return ctx

    async def _tidied(self, ctx: Context[Any], result: Result) -> Result:
        """Close what the clause may have harmed, and look whether anything outlives its adapter."""
        gone = self._stands[ctx.clause.options].ended_by_itself()
        if result.outcome not in _UNHARMED or gone is not None or not self._lessons.can_reset:
            try:
                await self._close_stands()
            except FixtureError as error:
                gone = gone or str(error)
        if result.outcome is Outcome.PASS and gone is not None:
            return not_met(ctx.clause, _unexpected_end(ctx, gone))
        grown = Inventory.take(self._root).added_since(self._baseline)
        if grown.kinds() <= self._lessons.innocent:
            return result
        left = await self.close()
        if result.outcome is not Outcome.PASS:
            # What it has left is not the next clause's.
            return result
        if not left:
            self._lessons.innocent |= grown.kinds()
            return result
        return not_met(ctx.clause, _leak(ctx, left))

    async def _close_stands(self) -> None:
        while self._stands:
            _, stand = self._stands.popitem()
            await stand.close()


def _unexpected_end(ctx: Context[Any], why: str) -> Failure:
    return Failure(
        expected="an adapter that stays open until it is left",
        observed=why,
        contradiction=f"The adapter did not last, or could not be left: {why}.",
        history=ctx.history.events(),
    )


def _leak(ctx: Context[Any], left: str) -> Failure:
    return Failure(
        expected="nothing of the adapter's once it is closed",
        observed=left,
        contradiction=f"The adapter is closed and has left behind: {left}.",
        history=ctx.history.events(),
    )
