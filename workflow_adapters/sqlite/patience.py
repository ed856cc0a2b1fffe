"""Waiting for the lock of a database file, in a connection's thread."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from typing import Final, TypeVar

from workflow_adapters.sqlite.errors import is_busy

T = TypeVar("T")

# SQLite's own busy handler backs off to 100 ms and lets whoever came last win: with four processes the slowest claim
# took two seconds. Pauses of about a millisecond keep it under twenty.
_FIRST_PAUSE: Final = 0.0001
_LONGEST_PAUSE: Final = 0.0012
_GROWTH: Final = 1.5


class Patience:
    """How long a call goes on trying. `end` makes it give up now and may be called from any thread."""

    __slots__ = ("_abandoned", "_deadline")

    def __init__(self, deadline: float, abandoned: Callable[[], bool] | None = None) -> None:
        """`deadline` is an instant of time.monotonic; `abandoned` tells that nobody waits for the call any more."""
        self._deadline = deadline
        self._abandoned = abandoned

    @classmethod
    def of(cls, seconds: float) -> Patience:
        return cls(time.monotonic() + seconds)

    def end(self) -> None:
        self._deadline = 0.0

    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline or (self._abandoned is not None and self._abandoned())


IMPATIENT: Final = Patience(0.0)
"""For what waits for no lock, or may not be tried again."""


def patiently(attempt: Callable[[], T], patience: Patience) -> T:
    """Make an attempt that has no effect when it fails for a lock, again and again while patience lasts."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            time.sleep(random.uniform(_FIRST_PAUSE, pause))
            if patience.is_over():
                raise
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
