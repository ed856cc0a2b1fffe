"""Which clauses of which adapter are still to be tried when several processes try them, and who has them in hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.clause import Clause
from conformance.conclusion import Farewell, Stopwatch
from conformance.outcome import Result
from conformance.registry import load

_IN_A_SHARE: Final = 8
"""Few, so that all processes end at about the same time; some, since each share is asked for."""


@dataclass(frozen=True, slots=True)
class Share:
    """Clauses for one process to try on the adapter at `place`."""

    place: int
    ids: Sequence[str]
    known: Sequence[Result]
    """On what these clauses build on, as far as that was asked for and is not among them."""


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing can be begun before more results are known."""


class _Trial:
    """What has become of one adapter's clauses."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self.clauses = clauses
        self.waiting = [clauses[first : first + _IN_A_SHARE] for first in range(0, len(clauses), _IN_A_SHARE)]
        self.watch = Stopwatch()
        self.results: dict[str, Result] = {}
        self.farewells: list[Farewell] = []
        self.visits = 0
        """How often a process has opened the adapter; each time it says farewell once."""
        self._ids = {clause.id for clause in clauses}

    def begin_visit(self) -> None:
        if not self.visits:
            self.watch = Stopwatch()
        self.visits += 1

    @property
    def is_ready(self) -> bool:
        return any(map(self._is_ready, self.waiting))

    def next_share(self, place: int) -> Share | Later:
        """The first that can be judged: every clause is tried once, and what it is after is known by then."""
        share = next(filter(self._is_ready, self.waiting), None)
        if share is None:
            return Later()
        self.waiting.remove(share)
        known = [self.results[earlier] for earlier in sorted(self._earlier(share))]
        return Share(place, [clause.id for clause in share], known)

    @property
    def is_done(self) -> bool:
        return len(self.results) == len(self.clauses) and len(self.farewells) == self.visits

    def _is_ready(self, share: Sequence[Clause]) -> bool:
        return self._earlier(share) <= self.results.keys()

    def _earlier(self, share: Sequence[Clause]) -> set[str]:
        """What the clauses build on, in other shares. What is in none, each process tries for itself."""
        own = {clause.id for clause in share}
        return self._ids.intersection(_foundations(share)) - own


def _foundations(share: Sequence[Clause]) -> set[str]:
    """All that the clauses are after, and what that is after, whether it is asked for or not."""
    found: set[str] = set()
    waiting = [earlier for clause in share for earlier in clause.after]
    while waiting:
        earlier = waiting.pop()
        if earlier not in found:
            found.add(earlier)
            waiting.extend(load().get(earlier).after)
    return found


class Shares:
    """Hands the clauses of several adapters out to workers, each known by any value that can be hashed.

    A worker keeps the adapter it has opened as long as that has clauses left, then begins with one that nobody tries
    yet, and then helps where most is left.
    """

    def __init__(self, chosen: Sequence[Sequence[Clause]]) -> None:
        self._trials = [_Trial(clauses) for clauses in chosen]
        self._at: dict[Hashable, deque[int]] = {}
        """Where each worker is: the adapter it has open last, and before it the one that it is about to leave."""

    def __len__(self) -> int:
        """How many are still waiting."""
        return sum(len(trial.waiting) for trial in self._trials)

    def hand_out(self, worker: Hashable) -> Share | Later | None:
        """The worker's next share; None when nothing is left."""
        place = self._place_for(worker)
        if place is None:
            return None
        share = self._trials[place].next_share(place)
        if isinstance(share, Share):
            self._move(worker, place)
        return share

    def whereabouts(self, worker: Hashable) -> int | None:
        """The adapter that the worker has open: what it was handed a share of, once it has left all others.

        None when it has not been handed any.
        """
        return self._at[worker][0] if worker in self._at else None

    def note(self, worker: Hashable, place: int, what: Result | Farewell) -> None:
        """Remember what the worker has told of the adapter at `place`."""
        trial = self._trials[place]
        if isinstance(what, Farewell):
            trial.farewells.append(what)
            if len(self._at[worker]) > 1:
                self._at[worker].popleft()
        else:
            trial.results[what.clause_id] = what

    def is_done(self, place: int) -> bool:
        """Whether every clause has its result and every worker has left the adapter."""
        return self._trials[place].is_done

    def tried(self, place: int) -> Sequence[tuple[Clause, Result]]:
        """In the order of the clauses, when all is done."""
        trial = self._trials[place]
        return [(clause, trial.results[clause.id]) for clause in trial.clauses]

    def watch(self, place: int) -> Stopwatch:
        """Started when the first worker was handed a share of the adapter at `place`."""
        return self._trials[place].watch

    def farewells(self, place: int) -> Sequence[Farewell]:
        return self._trials[place].farewells

    def _move(self, worker: Hashable, place: int) -> None:
        at = self._at.setdefault(worker, deque())
        if not at or at[-1] != place:
            at.append(place)
            self._trials[place].begin_visit()

    def _place_for(self, worker: Hashable) -> int | None:
        at = self._at.get(worker)
        if at is not None and self._trials[at[-1]].waiting:
            # Also where none of it can be begun yet: that takes less time than to open another.
            return at[-1]
        waiting = [place for place, trial in enumerate(self._trials) if trial.waiting]
        untouched = [place for place in waiting if not self._trials[place].visits]
        return untouched[0] if untouched else max(waiting, key=self._left, default=None)

    def _left(self, place: int) -> tuple[bool, int]:
        trial = self._trials[place]
        return trial.is_ready, len(trial.waiting)
