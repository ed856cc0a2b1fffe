"""Calls made at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

import anyio

from conformance.outcome import ClauseFailedError

T = TypeVar("T")
V = TypeVar("V")


def is_asked_for(error: BaseException) -> bool:
    """Whether the error is a cancellation that somebody has asked the running task for.

    An adapter can raise CancelledError by itself: passed on, it ends a task group without a trace.
    """
    if isinstance(error, asyncio.CancelledError):
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return False
        return task is not None and task.cancelling() > 0
    return isinstance(error, anyio.get_cancelled_exc_class())


async def together(*calls: Callable[[], Awaitable[T]]) -> list[T]:
    """Start the calls at one moment and return their answers, in order. The first error ends them all."""
    answers: dict[int, T] = {}
    start = anyio.Event()

    async def make(place: int) -> None:
        await start.wait()
        answers[place] = await calls[place]()

    await _all(make, len(calls), start)
    return [answers[place] for place in range(len(calls))]


async def settled(*calls: Callable[[], Awaitable[T]]) -> list[T | Exception]:
    """As `together`, with errors in their places among the answers."""
    return await together(*(_bound(_settle, call) for call in calls))


async def _settle(call: Callable[[], Awaitable[T]]) -> T | Exception:
    try:
        return await call()
    except ClauseFailedError:
        raise
    except Exception as error:  # noqa: BLE001 - the clause looks at whatever came
        return error


async def _all(make: Callable[[int], Coroutine[Any, Any, None]], count: int, start: anyio.Event) -> None:
    try:
        async with anyio.create_task_group() as tasks:
            for place in range(count):
                tasks.start_soon(make, place)
            start.set()
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _bound(function: Callable[[V], Awaitable[T]], argument: V) -> Callable[[], Awaitable[T]]:
    return lambda: function(argument)


def _first(error: BaseException) -> BaseException:
    """One error stands for a group: a failed expectation before any other."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_first(inner) for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions]
    failed = [leaf for leaf in leaves if isinstance(leaf, ClauseFailedError)]
    return (failed or leaves)[0]
