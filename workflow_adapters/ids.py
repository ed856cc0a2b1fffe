"""Generated ids: UUIDv7 text that sorts bytewise in creation order within one process."""

from __future__ import annotations

import os
import secrets
import threading
import time
from uuid import UUID

_TAIL_BITS = 74


class _Ids:
    """Counts the random tail up within one millisecond. Safe from any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ms = 0
        self.tail = 0

    def next(self) -> UUID:
        with self.lock:
            ms = time.time_ns() // 1_000_000
            self.tail += 1 + secrets.randbits(32)
            if ms > self.ms or self.tail >> _TAIL_BITS:
                self.ms = max(ms, self.ms + 1)
                # The top bit stays free, so that the ids of one millisecond do not overflow the tail.
                self.tail = secrets.randbits(_TAIL_BITS - 1)
            return _uuid7(self.ms, self.tail)

    def after_fork_in_child(self) -> None:
        # A child that went on counting from its parent's state would hand out the parent's ids.
        self.lock = threading.Lock()
        self.tail = secrets.randbits(_TAIL_BITS - 1)


def _uuid7(ms: int, tail: int) -> UUID:
    high = tail >> 62
    low = tail & ((1 << 62) - 1)
    return UUID(int=(ms << 80) | (0x7 << 76) | (high << 64) | (0b10 << 62) | low)


_ids = _Ids()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.after_fork_in_child)


def new_id() -> str:
    """Return a fresh id, strictly greater than every earlier one of this process, even when the clock steps back."""
    return str(_ids.next())
