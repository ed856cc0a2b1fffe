"""Pauses between tries: exponential, with full jitter, bounded."""

from __future__ import annotations

import random
from datetime import timedelta

import anyio


class Backoff:
    """Each `pause` is drawn from [0.5, 1] of a span that doubles from `first` to `longest`."""

    def __init__(
        self, first: timedelta = timedelta(milliseconds=50), longest: timedelta = timedelta(seconds=10)
    ) -> None:
        self._first = first.total_seconds()
        self._longest = longest.total_seconds()
        self._next = self._first

    def reset(self) -> None:
        self._next = self._first

    def draw(self) -> float:
        """Seconds to pause now; the next pause is twice as long."""
        # Not a secret: it only keeps many workers from trying in step.
        seconds = self._next * random.uniform(0.5, 1.0)
        self._next = min(self._next * 2, self._longest)
        return seconds

    async def pause(self, until: anyio.Event | None = None) -> None:
        """Sleep for the next pause, or until the event is set."""
        seconds = self.draw()
        if until is None:
            await anyio.sleep(seconds)
        else:
            with anyio.move_on_after(seconds):
                await until.wait()
