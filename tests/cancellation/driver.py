"""Drives a call's coroutine and cancels it at its n-th suspension."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

import anyio

MAX_POINTS: Final = 500


@dataclass(frozen=True, slots=True)
class Mode:
    """Which kind of cancel, and how often: the second comes at the suspension after the first."""

    kind: str
    times: int

    def __str__(self) -> str:
        return f"{self.kind} x{self.times}"


ANYIO_MODES: Final = (Mode("anyio", 1), Mode("anyio", 2))
NATIVE_MODES: Final = (Mode("task.cancel", 1), Mode("task.cancel", 2))


def modes() -> tuple[Mode, ...]:
    """The modes of the running event loop: trio has no cancel of its own that reaches through a shield."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ANYIO_MODES
    return (*ANYIO_MODES, *NATIVE_MODES)


class Suspensions:
    """Awaits a coroutine step by step; at suspension `at`, and at the ones after it, it calls the next of `cancels`.

    A cancel is called just before the suspension, from inside the task: it is delivered while the call is suspended
    there.
    """

    def __init__(self, call: Awaitable[Any], at: int, cancels: list[Callable[[], object]]) -> None:
        self._call = call
        self._at = at
        self._cancels = cancels
        self.count = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._call.__await__()
        resume: Callable[[], Any] = lambda: next(steps)  # noqa: E731 - replaced below by what the loop sends
        while True:
            try:
                awaited = resume()
            except StopIteration as stop:
                return stop.value
            self.count += 1
            if self.count >= self._at and self._cancels:
                self._cancels.pop(0)()
            try:
                sent = yield awaited
            except BaseException as error:  # noqa: BLE001 - the cancel belongs to the call, which decides on it
                resume = _thrower(steps, error)
            else:
                resume = _sender(steps, sent)


def _sender(steps: Generator[Any, Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: steps.send(value)


def _thrower(steps: Generator[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: steps.throw(error)


async def cancel_at(
    call: Callable[[], Awaitable[Any]], at: int, mode: Mode, just_before: Callable[[], object] = lambda: None
) -> bool:
    """Run the call and cancel it at its `at`-th suspension; False when it ended before it got there."""
    cancel = _cancel_natively if mode.kind == "task.cancel" else _cancel_scopes
    return await cancel(call, at, mode.times, just_before)


async def _cancel_natively(
    call: Callable[[], Awaitable[Any]], at: int, times: int, just_before: Callable[[], object]
) -> bool:
    cancels: list[Callable[[], object]] = []
    suspensions = Suspensions(call(), at, cancels)

    async def run() -> None:
        await suspensions

    task = asyncio.create_task(run())
    cancels.extend([_both(just_before, task.cancel), task.cancel][:times])
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return suspensions.count >= at


async def _cancel_scopes(
    call: Callable[[], Awaitable[Any]], at: int, times: int, just_before: Callable[[], object]
) -> bool:
    reached = False

    async def run() -> None:
        nonlocal reached
        with anyio.CancelScope() as outer, anyio.CancelScope() as inner:
            cancels: list[Callable[[], object]] = [_both(just_before, inner.cancel), outer.cancel]
            suspensions = Suspensions(call(), at, cancels[:times])
            try:
                await suspensions
            finally:
                reached = suspensions.count >= at

    # A task of its own, because the one that waits for the outcome must not be the one that is cancelled.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
    return reached


def _both(first: Callable[[], object], second: Callable[[], object]) -> Callable[[], object]:
    return lambda: (first(), second())


async def cancel_everywhere(attempt: Callable[[int, Mode], Awaitable[bool]]) -> dict[Mode, int]:
    """Make the attempt for every n, in every mode, until the call ends before its n-th suspension.

    Returns how many points were tried in each mode.
    """
    points: dict[Mode, int] = {}
    for mode in modes():
        n = 1
        while await attempt(n, mode):
            n += 1
            assert n <= MAX_POINTS, "the call never ends"
        points[mode] = n - 1
    return points
