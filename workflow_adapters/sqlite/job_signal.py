"""Waking whoever waits for jobs in this process."""

from __future__ import annotations

import anyio


class JobSignal:
    """Shared by the job queues of one bundle."""

    def __init__(self) -> None:
        self._changed: anyio.Event | None = None

    def next_change(self) -> anyio.Event:
        """An event that the next change sets."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def changed(self) -> None:
        """A job may have become due."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None
