"""The one connection that writes, and the turns on it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiosqlite
import anyio

from workflow_adapters.errors import BackendUnavailableError
from workflow_adapters.sqlite.calls import Call, Line, Waiting, bundle_closed
from workflow_adapters.sqlite.connection import Target, close_connection, open_connection, start
from workflow_adapters.sqlite.grouping import run_group
from workflow_adapters.sqlite.patience import Patience

_LARGEST_GROUP: Final = 200
"""Other processes wait for the write lock while a group runs."""


class Writer:
    """Groups the calls of concurrent tasks and lends the connection to transactions, in the order of asking.

    Nothing in flight: a call is sent at once. Otherwise it waits in the line, and what has gathered there by the end of
    the group in flight becomes the next group.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._line = Line("a turn to write")
        self._opening = anyio.Lock()
        self._connection: aiosqlite.Connection | None = None
        self._discarded: aiosqlite.Connection | None = None
        self._patience: Patience | None = None
        self._occupied = False
        self._closed = False

    async def open(self) -> None:
        await self._opened()

    async def close(self) -> None:
        """Send away who waits, let the group in flight end, close. A transaction that is open is rolled back."""
        self._closed = True
        self._line.send_away(bundle_closed)
        if self._patience is not None:
            self._patience.end()
        async with self._opening:
            for connection in (self._discarded, self._connection):
                if connection is not None:
                    await close_connection(connection)
            self._discarded = self._connection = None

    async def run(self, call: Call) -> Any:
        """Run a call in its turn. Cancelled before that it has no effect; afterwards its whole effect."""
        connection = self._connection or await self._opened()
        if self._occupied:
            self._line.join(call)
        else:
            self._send(connection, [call])
        return await call.waiter

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[aiosqlite.Connection]:
        """The connection for a transaction, which is at its end when the connection comes back."""
        connection = self._connection or await self._opened()
        if self._occupied:
            connection = await self._turn()
        self._occupied = True
        try:
            yield connection
        finally:
            self._keep_or_discard(connection)
            self._next_turn()

    async def _opened(self) -> aiosqlite.Connection:
        """The first connection, or a new one in place of one that was left in an unknown state."""
        async with self._opening:
            if self._closed:
                raise bundle_closed()
            if self._discarded is not None:
                discarded, self._discarded = self._discarded, None
                await close_connection(discarded)
            if self._connection is None:
                self._connection = await open_connection(self._target)
            return self._connection

    async def _turn(self) -> aiosqlite.Connection:
        turn = Waiting(deadline=time.monotonic() + self._target.busy_timeout)
        self._line.join(turn)
        try:
            return await turn.waiter
        except asyncio.CancelledError:
            if not turn.waiter.cancelled() and turn.waiter.exception() is None:
                self._next_turn()  # the turn came together with the cancel
            raise

    def _next_turn(self) -> None:
        connection, first = self._connection, self._line.first()
        self._occupied = connection is not None and first is not None
        if connection is None:
            self._line.send_away(_lost)
        elif isinstance(first, Call):
            self._send(connection, self._line.leave_together(_LARGEST_GROUP))
        elif first is not None:
            self._line.leave().waiter.set_result(connection)

    def _send(self, connection: aiosqlite.Connection, calls: Sequence[Call]) -> None:
        self._occupied = True
        patience = Patience(calls[0].deadline, lambda: all(call.waiter.done() for call in calls))
        self._patience = patience
        try:
            group = start(connection, lambda opened: run_group(opened, calls, patience))
        except BackendUnavailableError as closed:
            self._group_ended(connection, calls, closed)
        else:
            group.add_done_callback(lambda ended: self._group_ended(connection, calls, ended.exception()))

    def _group_ended(
        self, connection: aiosqlite.Connection, calls: Sequence[Call], fault: BaseException | None
    ) -> None:
        self._patience = None
        self._keep_or_discard(connection)
        late = time.monotonic()
        again = [call for call in calls if call.starved and call.deadline > late and not self._closed]
        for call in calls:
            call.error = fault or call.error
            if call not in again:
                call.settle()
        self._line.rejoin(again)
        if len(calls) == 1:
            self._next_turn()
        else:
            # Whoever was told just now runs first and is in the line by then, so that groups stay large.
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _keep_or_discard(self, connection: aiosqlite.Connection) -> None:
        try:
            unknown = connection.in_transaction
        except (ValueError, sqlite3.ProgrammingError):
            unknown = True  # it has been closed
        if unknown and connection is self._connection:
            self._connection, self._discarded = None, connection


def _lost() -> BackendUnavailableError:
    return BackendUnavailableError("the connection had to be replaced; nothing was written")
