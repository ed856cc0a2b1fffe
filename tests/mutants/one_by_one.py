"""What a suite without concurrency would have done: one instance, and one call after the other."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio

from conformance import concurrency
from conformance.context import Context

NEEDS_COMPANY: Final = frozenset({"JQ-WAIT-03", "JQ-WAIT-04", "WP-TX-30"})
"""Clauses of calls that wait for one beside them: so they would wait for ever, on whatever adapter."""


def arrange() -> None:
    """Run all further clauses so, in this process."""
    concurrency._all = _in_turn
    setattr(Context, Context.instances.__name__, _the_one)


async def _in_turn(make: Callable[[int], Coroutine[Any, Any, None]], count: int, start: anyio.Event) -> None:
    start.set()
    for place in range(count):
        await make(place)


async def _the_one(ctx: Context[Any], count: int) -> list[Any]:
    return [ctx.adapter] * count
