"""Calls that wait for a connection: first come, first served, each until its deadline."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workflow_adapters.errors import BackendBusyError, UsageError
from workflow_adapters.sql.statement import Operation


@dataclass(slots=True, eq=False, kw_only=True)
class Waiting:
    """Somebody who waits. `deadline` is an instant of time.monotonic."""

    deadline: float
    waiter: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True, eq=False, kw_only=True)
class Call(Waiting):
    """An operation to run. The connection's thread fills in what came of it; the event loop tells the waiter.

    `starved`: the lock could not be had, and nothing was done.
    """

    operation: Callable[[], Operation[Any]]
    single: bool = False
    answer: Any = None
    error: BaseException | None = None
    starved: bool = False

    def run(self, function: Callable[[], Any]) -> None:
        """In the thread: note what comes of the function. A call that was cancelled meanwhile has no effect."""
        self.answer = self.error = None
        if self.waiter.done():
            return
        try:
            self.answer = function()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the waiter's
            self.error = error

    def settle(self) -> None:
        """On the loop: tell the waiter."""
        if self.waiter.done():
            return
        if self.error is None:
            self.waiter.set_result(self.answer)
        else:
            self.waiter.set_exception(self.error)


class Line:
    """The line in front of a connection."""

    def __init__(self, what: str) -> None:
        """`what` those who stand in it wait for, in the words of the error at their deadline."""
        self._what = what
        self._waiting: deque[Waiting] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def join(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        if self._timer is None:
            self._set_timer(waiting.deadline)

    def rejoin(self, calls: Sequence[Call]) -> None:
        """Put calls that were starved back to where they were."""
        for call in reversed(calls):
            call.starved, call.error = False, None
            self._waiting.appendleft(call)

    def first(self) -> Waiting | None:
        """Who is next. Whoever was cancelled meanwhile, or has been told that it took too long, is not in the line."""
        while self._waiting and self._waiting[0].waiter.done():
            self._waiting.popleft()
        return self._waiting[0] if self._waiting else None

    def leave(self) -> Waiting:
        return self._waiting.popleft()

    def leave_together(self, most: int) -> list[Call]:
        """The calls at the head of the line, up to whoever waits for something else."""
        calls: list[Call] = []
        while len(calls) < most and isinstance(first := self.first(), Call):
            calls.append(first)
            self.leave()
        return calls

    def send_away(self, error: Callable[[], Exception]) -> None:
        """Tell everybody in the line that nothing will come of it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            waiter = self._waiting.popleft().waiter
            if not waiter.done():
                waiter.set_exception(error())

    def _set_timer(self, deadline: float) -> None:
        delay = deadline - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(delay, self._send_away_late)

    def _send_away_late(self) -> None:
        self._timer = None
        now = time.monotonic()
        while (waiting := self.first()) is not None:
            if waiting.deadline > now:
                self._set_timer(waiting.deadline)
                return
            late = BackendBusyError(f"{self._what} could not be had in time; nothing was written")
            waiting.waiter.set_exception(late)


def bundle_closed() -> UsageError:
    return UsageError("this bundle is closed; open a new one")
