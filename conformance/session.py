"""Clauses tried one after the other on one adapter: blocked, waived, isolated from each other, and always finished."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeVar

from conformance.backend import Spec
from conformance.choice import DEFAULT_CHOICE, Choice
from conformance.clause import Clause, Options
from conformance.context import Context
from conformance.instance import FixtureError
from conformance.judge import attempt, not_met, too_late
from conformance.lane import Lane, LaneLostError
from conformance.leaks import Inventory, leftovers
from conformance.outcome import BUILDS_ON, Failure, Outcome, Result
from conformance.places import Place, Places
from conformance.registry import Registry
from conformance.residue import NoAnswerError
from conformance.stand import ResidueError, Stand

T = TypeVar("T")

_OPEN_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 30.0
_DROP_SECONDS: Final = 0.5
# What a clause is given on top of its limit to answer its cancellation.
_GRACE: Final = timedelta(seconds=1)
_SETTLE_SECONDS: Final = 1.0
_SETTLE_SECONDS_OF_KNOWN_LEAKS: Final = 0.05
_BLOCKING: Final = frozenset({Outcome.FAIL, Outcome.NOT_TESTED, Outcome.HARNESS_ERROR})
_UNHARMED: Final = frozenset({Outcome.PASS, Outcome.NOT_APPLICABLE})


class Session:
    """One adapter under trial. Synchronous: the adapter lives in a lane, and may hang there."""

    def __init__(self, spec: Spec, registry: Registry, choice: Choice = DEFAULT_CHOICE) -> None:
        self.spec = spec
        self.seed = secrets.randbelow(2**31) if choice.seed is None else choice.seed
        self.refused: str | None = None
        """Why nothing that was or would be found means anything."""
        self._registry = registry
        self._choice = choice
        self._places = Places(spec, self.seed, choice.dsn)
        self._results: dict[str, Result] = {}
        self._unusable: dict[Options, str] = {}
        self._lane: Lane | None = None
        self._stands: dict[Options, Stand] = {}
        self._baseline = Inventory()
        self._innocent: frozenset[str] = frozenset()
        self._leaking: frozenset[str] = frozenset()
        self._earlier_ids: list[str] = []
        self._can_reset = True
        self._can_look = True

    @property
    def server(self) -> str | None:
        """The database server that was found, in words."""
        return self._places.server

    def check(self, clause_id: str) -> Result:
        """Try a clause, and before it what it is after; each once."""
        if clause_id not in self._results:
            clause = self._registry.get(clause_id)
            try:
                self._results[clause_id] = self._settled(clause)
            except Exception as error:  # noqa: BLE001 - one clause must not cost the others their trial
                self._drop_lane()
                reason = f"{type(error).__name__}: {error}"
                self._results[clause_id] = Result(clause_id=clause_id, outcome=Outcome.HARNESS_ERROR, reason=reason)
        return self._results[clause_id]

    def close(self) -> str:
        """Close every adapter and remove everything made for them; say what the adapters have left behind."""
        left = ""
        try:
            if self._lane is not None:
                left = self._call(self._close_and_look, _CLOSE_SECONDS)
        except FixtureError as error:
            left = str(error)
        except LaneLostError as lost:
            left = f"closing an adapter does not end and {lost}"
        finally:
            if self._lane is not None:
                self._lane.close(_CLOSE_SECONDS)
                self._lane = None
            self._places.close()
        return left

    def _settled(self, clause: Clause) -> Result:
        lack = self.spec.lacks(clause)
        if lack is not None:
            return Result(clause_id=clause.id, outcome=Outcome.NOT_APPLICABLE, reason=lack)
        for id in clause.after:  # noqa: A001 - a clause's
            outcome = self.check(id).outcome
            if outcome in _BLOCKING:
                reason = f"{BUILDS_ON}{id}, which is {outcome}"
                return Result(clause_id=clause.id, outcome=Outcome.NOT_TESTED, reason=reason)
        return self._waived(clause, self._tried(clause))

    def _waived(self, clause: Clause, result: Result) -> Result:
        gap = self.spec.gaps.get(clause.id)
        if gap is None:
            return result
        if result.outcome in {Outcome.FAIL, Outcome.WARN}:
            return replace(result, outcome=Outcome.WAIVED, reason=gap)
        if result.outcome is not Outcome.PASS:
            return result
        stale = Failure(
            expected="the declared gap",
            observed="the clause is met",
            contradiction=f"The gap {gap!r} has closed: take {clause.id} out of the declared gaps.",
        )
        return replace(result, outcome=Outcome.FAIL, failure=stale)

    def _tried(self, clause: Clause) -> Result:
        reason = self.refused or self._unusable.get(clause.options)
        if reason is not None:
            return Result(clause_id=clause.id, outcome=Outcome.NOT_TESTED, reason=reason)
        try:
            place = self._next_place()
            ctx = self._call(lambda: self._prepare(clause, place), _OPEN_SECONDS)
        except (FixtureError, ResidueError, LaneLostError) as error:
            return self._untested(clause, error)
        limit = clause.time_limit * self._choice.time_scale
        try:
            result = self._call(lambda: attempt(ctx, limit), (limit + _GRACE).total_seconds())
            return self._call(lambda: self._tidy(ctx, result), _CLOSE_SECONDS)
        except LaneLostError as lost:
            self._lose_lane()
            return too_late(ctx, limit, str(lost))

    def _untested(self, clause: Clause, error: FixtureError | ResidueError | LaneLostError) -> Result:
        reason = str(error)
        if isinstance(error, ResidueError):
            self.refused = reason
        else:
            if isinstance(error, LaneLostError):
                reason = f"the factory or reset has not come back within {_OPEN_SECONDS:g} s, and {error}"
            self._unusable[clause.options] = reason
            self._drop_lane()
        return Result(clause_id=clause.id, outcome=Outcome.NOT_TESTED, reason=reason)

    def _next_place(self) -> Place:
        """The store for the next clause: the same, where it can be emptied. Finding a server may block for long."""
        if not self._can_reset:
            self._call(self._close_stands, _CLOSE_SECONDS)
            self._places.leave()
        return self._places.place()

    def _call(self, function: Callable[[], Awaitable[T]], seconds: float) -> T:
        if self._lane is None:
            self._lane = Lane(self._choice.loop)
            self._lane.call(self._take_baseline, _OPEN_SECONDS)
        return self._lane.call(function, seconds)

    def _drop_lane(self) -> None:
        if self._lane is not None:
            self._lane.close(_DROP_SECONDS)
        self._lose_lane()

    def _lose_lane(self) -> None:
        """Go on without whatever is left in the lane: its adapters, and the store that they may hold locked."""
        self._lane = None
        self._stands.clear()
        self._places.leave()

    # In the lane

    async def _take_baseline(self) -> None:
        self._baseline = Inventory.take(self._places.root)

    async def _prepare(self, clause: Clause, place: Place) -> Context[Any]:
        if clause.options not in self._stands:
            assert self._lane is not None
            self._stands[clause.options] = Stand(self.spec, place, clause.options, self._lane.tasks)
        stand = self._stands[clause.options]
        fixture = await stand.instance(0)
        self._can_reset = await stand.reset()
        if self._can_look:
            try:
                await stand.refuse_residue(self._earlier_ids)
            except NoAnswerError:
                # Once is enough: the clauses will say the same in their own words.
                self._can_look = False
        stand.begin()
        ctx: Context[Any] = Context(clause, stand, fixture)
        self._earlier_ids = ctx.parent_ids
        return ctx

    async def _tidy(self, ctx: Context[Any], result: Result) -> Result:
        """Close what the clause may have harmed, and look whether anything outlives its adapter."""
        gone = self._stands[ctx.clause.options].ended_by_itself()
        if result.outcome not in _UNHARMED or gone is not None:
            try:
                await self._close_stands()
            except FixtureError as error:
                gone = gone or str(error)
        if result.outcome is Outcome.PASS and gone is not None:
            return not_met(ctx.clause, _unexpected_end(ctx, gone))
        grown = Inventory.take(self._places.root).added_since(self._baseline)
        if result.outcome is not Outcome.PASS or grown.kinds() <= self._innocent:
            return result
        left = await self._close_and_look()
        if not left:
            self._innocent |= grown.kinds()
            return result
        return not_met(ctx.clause, _leak(ctx, left))

    async def _close_stands(self) -> None:
        while self._stands:
            _, stand = self._stands.popitem()
            await stand.close()

    async def _close_and_look(self) -> str:
        await self._close_stands()
        now = Inventory.take(self._places.root).added_since(self._baseline)
        known = bool(now) and now.kinds() <= self._leaking
        left = await leftovers(
            self._baseline, self._places.root, _SETTLE_SECONDS_OF_KNOWN_LEAKS if known else _SETTLE_SECONDS
        )
        self._leaking |= left.kinds()
        await self._take_baseline()
        return left.words()


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
