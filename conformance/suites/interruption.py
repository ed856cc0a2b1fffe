"""Cancelling a call at its n-th suspension, for every n: by anyio, by task.cancel(), and by two of those."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

import anyio

_MOST_POINTS: Final = 200


class _Way(Enum):
    """How a call is cancelled; the value says it in failures."""

    SCOPE = "its cancel scope"
    TASK = "task.cancel()"
    TASK_TWICE = "task.cancel() twice"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call that was to be cancelled has ended."""

    came_back: bool
    """It returned: its effect must be there. Otherwise the whole effect is there, or none."""
    by: str
    """How it was cancelled, in words."""


Call: TypeAlias = Callable[[], Awaitable[object]]
Look: TypeAlias = Callable[[Ending], Awaitable[None]]
Trial: TypeAlias = Callable[[], Awaitable[tuple[Call, Look]]]
"""Prepares what a call works on; gives the call, and what looks at its effect and uses the adapter again."""


async def cancel_everywhere(trial: Trial, accepted: tuple[type[Exception], ...] = ()) -> None:
    """Cancel a call at its first suspension, then a fresh one at its second, until one ends before it is reached.

    An error in `accepted` counts as an end like any other.
    """
    for way in _ways():
        for point in range(1, _MOST_POINTS):
            call, look = await trial()
            struck, came_back = await _cancelled(_accepting(call, accepted), way, point)
            await look(Ending(came_back, f"{way.value} at suspension {point}"))
            if not struck:
                break


def _accepting(call: Call, accepted: tuple[type[Exception], ...]) -> Call:
    async def made() -> None:
        with contextlib.suppress(*accepted):
            await call()

    return made


def _ways() -> list[_Way]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return [_Way.SCOPE]
    return list(_Way)


async def _cancelled(call: Call, way: _Way, point: int) -> tuple[bool, bool]:
    """Whether the suspension was reached, and whether the call returned."""
    if way is _Way.SCOPE:
        scope = anyio.CancelScope()
        driven = _Driven(call(), point, 1, scope.cancel)
        with scope:
            await driven
        return driven.struck, not scope.cancelled_caught

    def strike() -> None:
        task.cancel()

    driven = _Driven(call(), point, 2 if way is _Way.TASK_TWICE else 1, strike)
    task = asyncio.ensure_future(_awaited(driven))
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return driven.struck, not task.cancelled()


async def _awaited(driven: _Driven) -> None:
    await driven


class _Driven:
    """Awaits a call and counts its suspensions; from the `point`-th on, the next `times` of them are struck."""

    def __init__(self, call: Awaitable[object], point: int, times: int, strike: Callable[[], object]) -> None:
        self._call = call
        self._point = point
        self._times = times
        self._strike = strike
        self._suspensions = 0
        self.struck = False

    def __await__(self) -> Generator[Any, Any, object]:
        steps: Any = self._call.__await__()
        resume: Callable[[], Any] = steps.__next__
        while True:
            try:
                waited_for = resume()
            except StopIteration as end:
                return end.value
            self._suspensions += 1
            if self._point <= self._suspensions < self._point + self._times:
                self.struck = True
                self._strike()
            resume = yield from _wait(steps, waited_for)


def _wait(steps: Any, waited_for: Any) -> Generator[Any, Any, Callable[[], Any]]:
    """Hand out what the call waits for; give what resumes it."""
    try:
        value = yield waited_for
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the call
        thrown = error
        return lambda: steps.throw(thrown)
    return lambda: steps.send(value)
