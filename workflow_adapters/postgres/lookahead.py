"""What a costly look at the queue saw besides what it took, to be tried before the next look.

A look is costly when its way to the first job that can be had is long: dead entries of the index that an old snapshot
keeps alive, groups that are full, or, on the bare reference schema, jobs that are not served. Then what was seen lasts
for ten times as long as the look took, and no longer than 0.9 s, so that no job that can be had waits much longer than
it would without. It narrows where claims look first and nothing else: whether a job may be had, and whether its group
has room, is always decided by the claim's own statement. While looks are cheap nothing is remembered, and the order of
claims is exact.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

import anyio

from workflow_adapters.inputs.job_queue import EnqueueJobInput
from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.payloads import is_served
from workflow_adapters.postgres.claim_answer import ClaimAnswer, Seen

Part: TypeAlias = tuple[str, str]
"""A lane and a group."""

Serves: TypeAlias = "tuple[ServedDefinition, ...] | None"

_LEAST: Final = 250
_MOST: Final = 1000
_COSTLY_MS: Final = 2.0
# What a large batch takes is no long way to the first job.
_EACH_MS: Final = 0.2
_IN_A_ROW: Final = 10
_SPARE_IDS: Final = 4
_PARTS: Final = 4
_MOST_PARTS: Final = 200
_SHORTEST: Final = 0.05
_LONGEST: Final = 0.9
_WAIT: Final = 0.1
_MOST_LANE_SETS: Final = 32
_MOST_RUNNING: Final = 10_000


class Recall(NamedTuple):
    """Candidates for one claim: jobs in order, and parts in which there may be room."""

    ids: list[Seen]
    parts: list[Part]


class Lookahead:
    """What was seen by claims that serve the same lanes."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ids: deque[Seen] = deque()
        self._parts: deque[Part] = deque(maxlen=_MOST_PARTS)
        self._looked_at = 0.0
        self._cost = 0.0
        self._expires_at = 0.0
        self._costly_in_a_row = 0
        self._remembers = False
        self._saw_all = False
        self._size = _LEAST
        self._looking = 0
        self._look_ended: anyio.Event | None = None

    @property
    def is_costly(self) -> bool:
        """Whether looks have been costly for a while."""
        return self._costly_in_a_row >= _IN_A_ROW

    @property
    def wanted(self) -> int:
        """How many candidates a costly look is to tell of."""
        return self._size

    @property
    def is_in_use(self) -> bool:
        return self._now() < self._expires_at

    def recall(self, limit: int) -> Recall | None:
        """Take out candidates for a claim; None when it is time to look, or nothing is left."""
        if not self.is_in_use:
            self._forget()
            self._size = _LEAST
            return None
        if not self._ids and not self._parts:
            # Used up before its time.
            self._size = min(2 * self._size, _MOST)
            return None
        ids = [self._ids.popleft() for _ in range(min(limit + _SPARE_IDS, len(self._ids)))]
        return Recall(ids, [self._parts.popleft() for _ in range(min(_PARTS, len(self._parts)))])

    def used(self, recall: Recall, claimed: set[str], taken_parts: Iterable[Part]) -> None:
        """Put back what a claim did not come to: it stops at its limit. What it passed by is not to be had."""
        reached = [position for position, seen in enumerate(recall.ids) if seen.id in claimed]
        last = reached[-1] + 1 if reached else 0 if claimed else len(recall.ids)
        self._ids.extendleft(reversed(recall.ids[last:]))
        if claimed:
            parts = list(recall.parts)
            for part in taken_parts:
                if part in parts:
                    parts.remove(part)
            self._parts.extendleft(reversed(parts))

    @contextmanager
    def looking(self) -> Generator[None]:
        """Tell others that a look is under way."""
        self._looking += 1
        try:
            yield
        finally:
            self._looking -= 1
            if self._look_ended is not None:
                self._look_ended.set()
                self._look_ended = None

    async def wait_for_look(self) -> bool:
        """Wait a little for a costly look that is under way; whether there was one."""
        if not self._looking or not (self.is_costly or self._remembers):
            return False
        if self._look_ended is None:
            self._look_ended = anyio.Event()
        with anyio.move_on_after(_WAIT):
            await self._look_ended.wait()
        return True

    def looked(self, answer: ClaimAnswer) -> None:
        """A look was made."""
        self._looked_at = self._now()
        self._cost = answer.milliseconds / 1000
        taking = _EACH_MS * (len(answer.jobs) + answer.failed)
        self._costly_in_a_row = self._costly_in_a_row + 1 if answer.milliseconds > _COSTLY_MS + taking else 0
        self._forget()
        self._remembers = answer.costly or self.is_costly
        self._expires_at = self._looked_at
        if self._remembers:
            self._ids.extend(answer.seen)
            self._saw_all = len(answer.seen) + len(answer.jobs) < self._size
            self._expires_at += min(max(10 * self._cost, _SHORTEST), _LONGEST)

    def came_back(self) -> None:
        """A job that was claimed once can be had again, perhaps before those that were seen: look, or look soon."""
        again_at = self._looked_at + 10 * self._cost if self.is_costly else self._now()
        self._expires_at = min(self._expires_at, again_at)

    def came_new(self, jobs: Sequence[Seen]) -> None:
        """Jobs were enqueued, in this order. They stand behind those of their priority and before those of a lower one.

        Where there are more jobs than were seen, new ones may not be first of what is left.
        """
        seen = list(self._ids)
        last = -math.inf if self._saw_all else seen[-1].priority if seen else math.inf
        new = [job for job in jobs if job.priority > last]
        if not new:
            return
        # Sorting leaves those of one priority as they are: what was seen first.
        merged = sorted(seen + new, key=lambda job: -job.priority)
        self._saw_all = self._saw_all and len(merged) <= _MOST
        self._ids = deque(merged[:_MOST])

    def made_room(self, part: Part) -> None:
        if self.is_in_use:
            self._parts.append(part)

    def _forget(self) -> None:
        self._ids.clear()
        self._parts.clear()


class ClaimMemory:
    """The lookaheads of one bundle, and which group its running jobs are in."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lookaheads: OrderedDict[Serves, Lookahead] = OrderedDict()
        self._running: OrderedDict[str, Part] = OrderedDict()

    def of(self, serves: Serves) -> Lookahead:
        lookahead = self._lookaheads.get(serves)
        if lookahead is None:
            if len(self._lookaheads) >= _MOST_LANE_SETS:
                self._lookaheads.popitem(last=False)
            lookahead = self._lookaheads[serves] = Lookahead(self._now)
        return lookahead

    def claimed(self, job_id: str, part: Part) -> None:
        self._running[job_id] = part
        if len(self._running) > _MOST_RUNNING:
            self._running.popitem(last=False)

    def ended(self, job_id: str) -> None:
        """A job is no longer RUNNING: there is room in its group."""
        part = self._running.pop(job_id, None)
        if part is not None:
            for lookahead in self._lookaheads.values():
                lookahead.made_room(part)

    def came_back(self) -> None:
        for lookahead in self._lookaheads.values():
            lookahead.came_back()

    def came_new(self, jobs: Sequence[tuple[str, EnqueueJobInput]]) -> None:
        """Jobs were enqueued under these ids."""
        now = datetime.now(UTC)
        for serves, lookahead in self._lookaheads.items():
            if lookahead.is_in_use:
                lookahead.came_new(
                    [
                        Seen(id=job_id, priority=job.priority, turn=None)
                        for job_id, job in jobs
                        if (job.scheduled_for is None or job.scheduled_for <= now)
                        and is_served(job.workflow_id, job.definition_version, serves)
                    ]
                )
