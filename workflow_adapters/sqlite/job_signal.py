"""Waking whoever waits for jobs in this process, and keeping them from spinning."""

from __future__ import annotations

from typing import Final

import anyio

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class JobSignal:
    """Shared by the job queues of one bundle.

    A look at the queue may find a job that whoever waits does not serve. As long as no claim follows from what looks
    have found they become rarer, so that a worker who asks again at once does not spin.
    """

    def __init__(self) -> None:
        self._changed: anyio.Event | None = None
        self._pause = 0.0

    @property
    def pause(self) -> float:
        """Seconds to wait for a change before the next look."""
        return self._pause

    def next_change(self) -> anyio.Event:
        """An event that the next change sets."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def changed(self) -> None:
        """A job may have become due."""
        self._pause = 0.0
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def found(self) -> None:
        """A look has found a job that is due."""
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE)

    def claimed(self) -> None:
        """What was found could be claimed."""
        self._pause = 0.0
