"""Generated ids: UUIDv7 text that sorts bytewise in creation order within one process."""

from __future__ import annotations

import os
import threading
import time

_TAIL_BITS = 74
_LOW_BITS = 62
_LOW = (1 << _LOW_BITS) - 1
_VERSION = 7 << 12
_VARIANT = 0b10 << _LOW_BITS
_STEPS_AT_ONCE = 256


class _Ids:
    """Counts the random tail up within one millisecond, in random steps. Safe from any thread."""

    def __init__(self) -> None:
        # Reentrant: a signal handler may log a call, which takes an id.
        self.lock = threading.RLock()
        self.ms = 0
        self.tail = 0
        # The random steps that are left: the kernel gives many in one call.
        self.steps: list[int] = []

    def next(self) -> str:
        with self.lock:
            ms = time.time_ns() // 1_000_000
            try:
                step = self.steps.pop()
            except IndexError:
                fresh = [*memoryview(os.urandom(4 * _STEPS_AT_ONCE)).cast("I")]
                step = fresh.pop()
                self.steps = fresh
            self.tail += 1 + step
            if ms > self.ms or self.tail >> _TAIL_BITS:
                self.ms = max(ms, self.ms + 1)
                # The top bit stays free, so that the ids of one millisecond do not overflow the tail.
                self.tail = _random_bits(_TAIL_BITS - 1)
            return _uuid7(self.ms, self.tail)

    def after_fork_in_child(self) -> None:
        # A child that went on counting from its parent's state would hand out the parent's ids.
        self.lock = threading.RLock()
        self.steps = []
        self.tail = _random_bits(_TAIL_BITS - 1)


def _uuid7(ms: int, tail: int) -> str:
    high = (ms << 16 | _VERSION | tail >> _LOW_BITS).to_bytes(8).hex()
    low = (_VARIANT | tail & _LOW).to_bytes(8).hex()
    return f"{high[:8]}-{high[8:12]}-{high[12:]}-{low[:4]}-{low[4:]}"


def _random_bits(count: int) -> int:
    # What secrets.randbits does, without its import of hmac and hashlib.
    return int.from_bytes(os.urandom((count + 7) // 8)) >> (-count % 8)


_ids = _Ids()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.after_fork_in_child)


def new_id() -> str:
    """Return a fresh id, strictly greater than every earlier one of this process, even when the clock steps back."""
    return _ids.next()
