"""Clauses tried one after the other on one adapter: blocked, waived, isolated from each other, and always finished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from conformance.backend import Spec
from conformance.bench import OPEN_SECONDS, Bench, Lessons
from conformance.choice import DEFAULT_CHOICE, Choice
from conformance.clause import Clause, Options
from conformance.conclusion import Farewell
from conformance.instance import FixtureError
from conformance.judge import too_late
from conformance.lane import Lane, LaneLostError
from conformance.outcome import BUILDS_ON, Failure, Outcome, Result
from conformance.places import Places
from conformance.registry import Registry
from conformance.stand import ResidueError

_DROP_SECONDS: Final = 0.5
_BLOCKING: Final = frozenset({Outcome.FAIL, Outcome.NOT_TESTED, Outcome.HARNESS_ERROR})


class Session:
    """One adapter under trial. Synchronous: the adapter lives in a lane, and may hang there."""

    def __init__(self, spec: Spec, registry: Registry, choice: Choice = DEFAULT_CHOICE) -> None:
        self.spec = spec
        self.choice = choice.seeded()
        self.refused: str | None = None
        """Why nothing that was or would be found means anything."""
        self._registry = registry
        self._places = Places(spec, self.seed, choice.dsn)
        self._results: dict[str, Result] = {}
        self._unusable: dict[Options, str] = {}
        self._lessons = Lessons()
        self._open: tuple[Lane, Bench] | None = None

    @property
    def seed(self) -> int:
        assert self.choice.seed is not None
        return self.choice.seed

    @property
    def server(self) -> str | None:
        """The database server that was found, in words."""
        return self._places.server

    def learn(self, results: Iterable[Result]) -> None:
        """Take over what was found elsewhere with the same choice: what is after those clauses need not try them."""
        for result in results:
            self._results.setdefault(result.clause_id, result)

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

    def conclude(self) -> Farewell:
        """`close`, and all that is to be said of the adapter afterwards."""
        left = self.close()
        return Farewell(server=self.server, refused=self.refused, leftovers=left)

    def close(self) -> str:
        """Close every adapter and remove everything made for them; say what the adapters have left behind."""
        left = ""
        try:
            if self._open is not None:
                lane, bench = self._open
                left = lane.call(bench.close, lambda: bench.until)
        except FixtureError as error:
            left = str(error)
        except LaneLostError as lost:
            left = f"closing an adapter does not end and {lost}"
        finally:
            self._drop_lane()
            self._places.close()
        return left

    def _settled(self, clause: Clause) -> Result:
        lack = self.spec.lacks(clause)
        if lack is not None:
            return Result(clause_id=clause.id, outcome=Outcome.NOT_APPLICABLE, reason=lack)
        for id in clause.after:  # noqa: A001 - a clause's
            outcome = self.check(id).outcome
            if outcome in _BLOCKING:
                # What keeps both from being tried is said rather than which of them came first.
                reason = self._refusal(clause) or f"{BUILDS_ON}{id}, which is {outcome}"
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
        reason = self._refusal(clause)
        if reason is not None:
            return Result(clause_id=clause.id, outcome=Outcome.NOT_TESTED, reason=reason)
        limit = clause.time_limit * self.choice.time_scale
        try:
            return self._trial(clause, limit)
        except LaneLostError as lost:
            return self._lost(clause, limit, lost)
        except ResidueError as error:
            self.refused = str(error)
            return Result(clause_id=clause.id, outcome=Outcome.NOT_TESTED, reason=self.refused)
        except FixtureError as error:
            self._drop_lane()
            return self._untested(clause, str(error))

    def _refusal(self, clause: Clause) -> str | None:
        return self.refused or self._unusable.get(clause.options)

    def _trial(self, clause: Clause, limit: timedelta) -> Result:
        if not self._lessons.can_reset:
            self._places.leave()
        # Finding a server may block for long, so that is not done in the lane.
        place = self._places.place()
        lane, bench = self._open or self._opened()
        return lane.call(lambda: bench.trial(clause, place, limit, lane.tasks), lambda: bench.until)

    def _opened(self) -> tuple[Lane, Bench]:
        lane, bench = Lane(self.choice.loop), Bench(self.spec, self._places.root, self._lessons)
        self._open = lane, bench
        lane.call(bench.take_baseline, lambda: bench.until)
        return lane, bench

    def _lost(self, clause: Clause, limit: timedelta, lost: LaneLostError) -> Result:
        # Looked at first: what is abandoned may yet come to an end of its own.
        ctx = self._open and self._open[1].ctx
        self._drop_lane()
        if ctx is not None:
            return too_late(ctx, limit, str(lost))
        return self._untested(clause, f"the factory or reset has not come back within {OPEN_SECONDS:g} s, and {lost}")

    def _untested(self, clause: Clause, reason: str) -> Result:
        self._unusable[clause.options] = reason
        return Result(clause_id=clause.id, outcome=Outcome.NOT_TESTED, reason=reason)

    def _drop_lane(self) -> None:
        """Go on without whatever is left in the lane: its adapters, and the store that they may hold locked."""
        if self._open is not None:
            self._open[0].close(_DROP_SECONDS)
        self._open = None
        self._places.leave()
