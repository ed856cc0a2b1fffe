"""Holds one case to the rule: cancelled anywhere, the whole effect happened or none, and the bundle is usable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import anyio

from tests.cancellation.driver import Mode, cancel_at, cancel_everywhere
from tests.cancellation.world import Case, World, seen
from workflow_adapters import BuiltInAdapters

_tags = count(1)


async def check_cancellation(
    case: Case, adapters: BuiltInAdapters, is_idle: Callable[[], Awaitable[bool]] | None = None
) -> dict[Mode, int]:
    """Cancel the case at every suspension in every mode; returns, and prints, how many points were tried.

    `is_idle` tells whether the backend holds no transaction and no lock.
    """
    untouched = await _reference(case, adapters, run=False)
    whole = await _reference(case, adapters, run=True)

    async def attempt(n: int, mode: Mode) -> bool:
        world = _world(case, adapters)
        prepared = await case.prepare(world)

        async def call() -> Any:
            return await case.call(world, prepared)

        reached = await cancel_at(call, n, mode)
        where = f"{case.name}, {mode}, suspension {n}"
        with anyio.fail_after(10):
            # The writer of the logged calls may have been at work when the call was cancelled.
            await world.logger.flush()
            assert is_idle is None or await is_idle(), where
            assert await seen(world) in (untouched, whole), where
            async with adapters.transaction() as tx:
                await tx.persistence.append_outbox_events([world.event("afterwards")])
        return reached

    points = await cancel_everywhere(attempt)
    print(f"{case.name}: {', '.join(f'{mode} {tried}' for mode, tried in points.items())}")  # noqa: T201 - the report of the test
    assert all(points.values()), case.name
    return points


async def _reference(case: Case, adapters: BuiltInAdapters, *, run: bool) -> Any:
    world = _world(case, adapters)
    prepared = await case.prepare(world)
    if run:
        await case.call(world, prepared)
    return await seen(world)


def _world(case: Case, adapters: BuiltInAdapters) -> World:
    return World(adapters=adapters, tag=f"{case.name} {next(_tags)}")
