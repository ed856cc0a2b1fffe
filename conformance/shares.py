"""Which clauses of which adapter are still to be tried when several processes try them, and who has them in hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.clause import Clause
from conformance.conclusion import Farewell, Stopwatch
from conformance.outcome import Result

_IN_A_SHARE: Final = 8
"""Few, so that all processes end at about the same time; some, since each share is asked for."""


@dataclass(frozen=True, slots=True)
class Share:
    """Clauses for one process to try on the adapter at `place`."""

    place: int
    ids: Sequence[str]
    known: Sequence[Result]
    """What is known of clauses that these are after."""


class _Trial:
    """What has become of one adapter's clauses."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self.count = len(clauses)
        self.watch = Stopwatch()
        self.waiting = deque(clauses[first : first + _IN_A_SHARE] for first in range(0, len(clauses), _IN_A_SHARE))
        self.results: dict[str, Result] = {}
        self.farewells: list[Farewell] = []
        self.visitors = 0
        """How many processes have opened the adapter; each says farewell once."""

    def next_share(self, place: int) -> Share:
        clauses = self.waiting.popleft()
        earlier = dict.fromkeys(each for clause in clauses for each in clause.after)
        known = [self.results[each] for each in earlier if each in self.results]
        return Share(place, [clause.id for clause in clauses], known)


class Shares:
    """Hands the clauses of several adapters out to workers, each known by any value that can be hashed.

    A worker keeps the adapter it has opened as long as that has clauses left, then begins with one that nobody tries
    yet, and then helps where most is left.
    """

    def __init__(self, chosen: Sequence[Sequence[Clause]]) -> None:
        self._trials = [_Trial(clauses) for clauses in chosen]
        self._open: dict[Hashable, int] = {}

    def __len__(self) -> int:
        """How many are still waiting."""
        return sum(len(trial.waiting) for trial in self._trials)

    def hand_out(self, worker: Hashable) -> Share | None:
        """The worker's next share; None when nothing is left."""
        place = self._place_for(worker)
        if place is None:
            return None
        trial = self._trials[place]
        if self._open.get(worker) != place:
            self._open[worker] = place
            if not trial.visitors:
                trial.watch = Stopwatch()
            trial.visitors += 1
        return trial.next_share(place)

    def place_of(self, worker: Hashable) -> int:
        """Which adapter the worker has been handed a share of last."""
        return self._open[worker]

    def note(self, place: int, what: Result | Farewell) -> None:
        """Remember what a worker has told of the adapter at `place`."""
        trial = self._trials[place]
        if isinstance(what, Farewell):
            trial.farewells.append(what)
        else:
            trial.results[what.clause_id] = what

    def is_done(self, place: int) -> bool:
        """Whether every clause has its result and every worker has left the adapter."""
        trial = self._trials[place]
        return len(trial.results) == trial.count and len(trial.farewells) == trial.visitors

    def results(self, place: int) -> Mapping[str, Result]:
        """By the ids of clauses, in the order in which they came."""
        return self._trials[place].results

    def watch(self, place: int) -> Stopwatch:
        """Started when the first worker was handed a share of the adapter at `place`."""
        return self._trials[place].watch

    def farewells(self, place: int) -> Sequence[Farewell]:
        return self._trials[place].farewells

    def _place_for(self, worker: Hashable) -> int | None:
        place = self._open.get(worker)
        if place is not None and self._trials[place].waiting:
            return place
        waiting = [place for place, trial in enumerate(self._trials) if trial.waiting]
        untouched = [place for place in waiting if not self._trials[place].visitors]
        return untouched[0] if untouched else max(waiting, key=self._left, default=None)

    def _left(self, place: int) -> int:
        return len(self._trials[place].waiting)
