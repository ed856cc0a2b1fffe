"""Our own pool. Taking a free connection and giving back a healthy one costs no round trip and no turn of the loop."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

from workflow_adapters.errors import BackendBusyError, UsageError
from workflow_adapters.postgres.connection import Connection, settle
from workflow_adapters.postgres.pool_port import PoolStats

_SETTLE_SECONDS: Final = 5.0
# How often within a limit the watchdog looks.
_LOOKS: Final = 4


class _Use(NamedTuple):
    generation: int
    since: float


class ConnectionPool:
    """At most `size` connections, opened when they are needed, closed when they were idle for `max_idle` seconds.

    The one used last is used next. A connection that is given back is in no transaction and holds nothing of its
    session; there is nothing to reset. One whose call is still without an answer after `limit` seconds, although the
    server has a shorter limit, leads nowhere any more and is cut: one timer for all of them costs a call nothing.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        *,
        size: int,
        limit: float,
        idle_limit: float | None,
        acquire_timeout: float,
        max_idle: float,
    ) -> None:
        self.limit = limit
        self.idle_limit = idle_limit
        # A server that keeps our limit on idle transactions keeps that on statements too.
        self.call_limit = limit if idle_limit is None else None
        self._connect = connect
        self._size = size
        self._acquire_timeout = acquire_timeout
        self._max_idle = max_idle
        self._free = size
        self._idle: list[tuple[Connection, float]] = []
        self._in_use: dict[Connection, _Use] = {}
        self._waiters: deque[asyncio.Future[bool]] = deque()
        self._generation = 0
        self._reaper: asyncio.TimerHandle | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._closed = False
        self._ended = False
        self._emptied: asyncio.Future[None] | None = None

    @property
    def stats(self) -> PoolStats:
        waiting = sum(not waiter.done() for waiter in self._waiters)
        return PoolStats(self._size - self._free, len(self._idle), waiting)

    async def acquire(self) -> Connection:
        if self._closed:
            raise UsageError("the connection pool is closed")
        if self._free:
            self._free -= 1
        else:
            await self._wait_for_slot()
        generation = self._generation
        try:
            connection = self._take_idle() or await self._open()
        except BaseException:
            self._give_slot_on()
            raise
        loop = asyncio.get_running_loop()
        self._in_use[connection] = _Use(generation, loop.time())
        if self._watchdog is None and self.call_limit is None and not self._closed:
            self._watchdog = loop.call_later(self.limit / _LOOKS, self._cut_dead_calls)
        return connection

    def keep(self, connection: Connection) -> None:
        self._in_use[connection] = self._in_use[connection]._replace(since=math.inf)

    async def release(self, connection: Connection) -> None:
        # Never suspends, so no cancel can come between.
        generation = self._in_use.pop(connection).generation
        if connection.is_closed():
            pass
        elif self._closed or generation != self._generation:
            connection.terminate()
        else:
            loop = asyncio.get_running_loop()
            self._idle.append((connection, loop.time()))
            if self._reaper is None:
                self._reaper = loop.call_later(self._max_idle, self._end_idle)
        self._give_slot_on()

    async def recover(self, connection: Connection) -> None:
        try:
            if not connection.is_closed() and not await settle(connection, _SETTLE_SECONDS):
                connection.terminate()
        except BaseException:
            connection.terminate()
            raise
        finally:
            await self.release(connection)

    async def invalidate(self) -> None:
        self._generation += 1
        for connection, _ in self._idle:
            connection.terminate()
        self._idle.clear()

    async def close(self, timeout: float) -> None:
        self._closed = True
        self._emptied = asyncio.get_running_loop().create_future()
        for timer in (self._reaper, self._watchdog):
            if timer is not None:
                timer.cancel()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(UsageError("the connection pool was closed while this call waited"))
        await self.invalidate()
        if self._free < self._size:
            await asyncio.wait([self._emptied], timeout=timeout)
        self._ended = True
        for connection in tuple(self._in_use):
            connection.terminate()
        # The transports close their sockets in the loop's next turn.
        await asyncio.sleep(0)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection, _ = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def _open(self) -> Connection:
        connection = await self._connect()
        if self._ended:
            connection.terminate()
            raise UsageError("the connection pool was closed while this call connected")
        return connection

    async def _wait_for_slot(self) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_later(self._acquire_timeout, _give_up, waiter)
        try:
            got_slot = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None and waiter.result():
                self._give_slot_on()
            raise
        finally:
            timer.cancel()
        if not got_slot:
            with suppress(ValueError):
                self._waiters.remove(waiter)
            raise BackendBusyError(
                f"no connection came free within {self._acquire_timeout:g} s: all {self._size} are in use"
            )

    def _give_slot_on(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(True)
                return
        self._free += 1
        if self._emptied is not None and self._free == self._size and not self._emptied.done():
            self._emptied.set_result(None)

    def _end_idle(self) -> None:
        self._reaper = None
        now = asyncio.get_running_loop().time()
        while self._idle and self._idle[0][1] + self._max_idle <= now:
            self._idle.pop(0)[0].terminate()
        if self._idle:
            self._reaper = asyncio.get_running_loop().call_at(self._idle[0][1] + self._max_idle, self._end_idle)

    def _cut_dead_calls(self) -> None:
        loop = asyncio.get_running_loop()
        for connection, use in tuple(self._in_use.items()):
            if use.since + self.limit < loop.time():
                connection.terminate()
        self._watchdog = loop.call_later(self.limit / _LOOKS, self._cut_dead_calls) if self._in_use else None


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
