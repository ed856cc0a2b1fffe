"""Waiting for jobs: notifications where they come through, and looks at the queue as the truth behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

NextDue: TypeAlias = Callable[[], Awaitable[float | None]]
"""Looks at the queue: seconds until the next job is due, 0 or less where one is, None where there is none."""

_FIRST_PAUSE: Final = 0.02


class WakeUps:
    """What the waiters of one bundle share.

    A signal that finds nobody waiting is kept for the next who waits. Who waits also looks, at least every
    `poll_interval` seconds. A due job may be one that the waiter does not serve: as long as looks alone find it, they
    become rarer, so that a worker who asks again at once does not spin.
    """

    def __init__(self, poll_interval: float) -> None:
        self._poll_interval = poll_interval
        self._signals = 0
        self._taken = 0
        self._pause = 0.0
        self._no_look_before = 0.0
        self._waiters: set[asyncio.Future[None]] = set()

    def signal(self) -> None:
        """A job may be due: all who wait return."""
        self._signals += 1
        self.look()

    def look(self) -> None:
        """Signals may have been missed: all who wait look for themselves."""
        self._pause = 0.0
        self._no_look_before = 0.0
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout: float, next_due: NextDue) -> bool:
        """True as soon as a job may be due, False after `timeout` seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        seen = self._taken
        while True:
            if self._signals != seen:
                self._taken = self._signals
                return True
            seen = self._signals
            look_at = self._no_look_before
            if loop.time() >= look_at:
                due_in = await next_due()
                if due_in is not None and due_in <= 0:
                    self._space_looks(loop.time())
                    return True
                self._pause = 0.0
                pause = self._poll_interval if due_in is None else min(due_in, self._poll_interval)
                look_at = loop.time() + pause
            if loop.time() >= deadline:
                return False
            if self._signals == seen:
                await self._sleep(min(look_at, deadline))

    def _space_looks(self, now: float) -> None:
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), self._poll_interval)
        self._no_look_before = now + self._pause

    async def _sleep(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = loop.call_at(until, _wake, waiter)
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
