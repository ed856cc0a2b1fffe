"""The bounded, thread-safe queue between log_call and its writer."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from workflow_adapters.ai_call_records import LoggedCall

DEFAULT_CAPACITY: Final = 100_000
DEFAULT_TEXT_CAPACITY: Final = 128 * 1024 * 1024

_logger = logging.getLogger("workflow_adapters.ai_calls")


class AICallQueue:
    """At most `capacity` calls, holding at most `text_capacity` characters; what does not fit is dropped and counted.

    Calls leave in the order they came. Positions count the calls taken since the beginning.
    """

    def __init__(self, capacity: int, text_capacity: int, rouse: Callable[[], None]) -> None:
        self._capacity = capacity
        self._text_capacity = text_capacity
        self._rouse = rouse
        # Reentrant: a signal handler or a finaliser may log while its own thread is inside.
        self._lock = threading.RLock()
        self._calls: deque[LoggedCall] = deque()
        self._text = 0
        self._closed = False
        self._asleep = False
        self.taken = 0
        self.settled = 0
        self.dropped = 0
        self._reported = 0

    def put(self, calls: Sequence[LoggedCall]) -> None:
        """Take calls, in order, and rouse the writer. Never raises, never waits."""
        with self._lock:
            before = self.taken
            for call in calls:
                text = _text_of(call)
                if self._closed or len(self._calls) >= self._capacity or self._text + text > self._text_capacity:
                    continue
                self._calls.append(call)
                self._text += text
                self.taken += 1
            refused = len(calls) - (self.taken - before)
            asleep, self._asleep = self._asleep, False
        if refused:
            self.drop(refused, "the logger is closed" if self._closed else "the buffer is full")
        if asleep:
            self._rouse()

    def oldest(self, limit: int) -> list[LoggedCall]:
        """The calls to write next; they stay in the queue until they are settled."""
        with self._lock:
            return list(islice(self._calls, limit))

    def fall_asleep(self) -> bool:
        """True when there is nothing to write now: the next call, or the closing, then rouses the writer."""
        with self._lock:
            self._asleep = not self._calls and not self._closed
            return self._asleep

    def settle(self, count: int) -> None:
        """The oldest `count` calls are durable, or counted as dropped."""
        with self._lock:
            for _ in range(count):
                self._text -= _text_of(self._calls.popleft())
            self.settled += count

    def close(self) -> None:
        """Drop every later call. The writer is roused; it goes on with what is left."""
        with self._lock:
            self._closed = True
        self._rouse()

    @property
    def waiting(self) -> int:
        return self.taken - self.settled

    @property
    def at_end(self) -> bool:
        """Closed, and nothing left."""
        return self._closed and not self._calls

    def drop(self, count: int, why: str) -> None:
        """Count lost calls, and log the count each time it has doubled: an outage shall not fill the log as well."""
        with self._lock:
            self.dropped += count
            due = self.dropped >= 2 * self._reported
            if due:
                self._reported = self.dropped
        if due:
            _logger.error("AI calls lost so far: %d; the last because %s", self.dropped, why)

    def report(self) -> None:
        """Log the count if the doublings have left some out."""
        if self.dropped > self._reported:
            self._reported = self.dropped
            _logger.error("AI calls lost so far: %d", self.dropped)


def _text_of(logged: LoggedCall) -> int:
    return len(logged.call.prompt) + len(logged.call.response)
