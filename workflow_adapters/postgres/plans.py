"""Getting rid of a plan that was made when the table looked otherwise.

A statement prepared while its table was empty keeps a plan that reads all of it, until statistics change. The server
plans anew for a statement it has not seen, so the text of one that has become slow gets another comment at its end.
Where that does not help, as when it is the network or a lock that takes the time, it is tried less and less often.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_SLOW: Final = 0.005
_IDLE: Final = 60.0
_AT_MOST_EVERY: Final = 1.0
_AT_LEAST_EVERY: Final = 600.0


class PlanWatch:
    """Watches the statements it is told to: one that takes more than 5 ms, or was not used for a minute, is prepared
    anew, at most once a second, and in ever longer intervals while it stays slow.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._watched: dict[str, _Watched] = {}

    def watch(self, text: str) -> None:
        self._watched.setdefault(text, _Watched(used=self._now()))

    def begin(self, text: str) -> float | None:
        """When a watched statement is about to run: now; None for one that is not watched."""
        watched = self._watched.get(text)
        if watched is None:
            return None
        now = self._now()
        if now - watched.used > _IDLE:
            watched.renew(now)
        watched.used = now
        return now

    def end(self, text: str, begun: float) -> None:
        now = self._now()
        watched = self._watched[text]
        if now - begun > _SLOW:
            watched.slow(now)
        else:
            watched.well(now)

    def mark(self, text: str) -> str:
        """What to put behind the statement."""
        return self._watched[text].mark


class _Watched:
    def __init__(self, used: float) -> None:
        self.used = used
        self.mark = ""
        self._renewals = 0
        self._interval = _AT_MOST_EVERY
        self._next = used + self._interval
        self._well_since: float | None = None

    def well(self, now: float) -> None:
        if self._well_since is None:
            self._well_since = now

    def slow(self, now: float) -> None:
        if self._well_since is not None and now - self._well_since >= self._interval:
            self._interval = _AT_MOST_EVERY
            self._next = now
        self._well_since = None
        if now >= self._next:
            self.renew(now)

    def renew(self, now: float) -> None:
        self._next = now + self._interval
        self._interval = min(2 * self._interval, _AT_LEAST_EVERY)
        self._renewals += 1
        self.mark = f" /* plan {self._renewals} */"
