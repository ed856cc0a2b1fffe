"""The connections that only read."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import aiosqlite

from workflow_adapters.errors import WorkflowAdapterError
from workflow_adapters.sqlite.calls import Call, Line, bundle_closed
from workflow_adapters.sqlite.connection import SqliteConnection, Target, close_connection, open_connection, start
from workflow_adapters.sqlite.execution import perform
from workflow_adapters.sqlite.patience import Patience

_logger = logging.getLogger("workflow_adapters.sqlite")


class Readers:
    """One connection, and up to `limit` while calls wait. Each runs one call at a time, to its end."""

    def __init__(self, target: Target, limit: int) -> None:
        self._target = target
        self._limit = limit
        self._line = Line("a connection to read on")
        self._idle: list[aiosqlite.Connection] = []
        self._busy: set[aiosqlite.Connection] = set()
        self._opening = 0
        self._closed = False

    async def open(self) -> None:
        self._idle.append(await open_connection(self._target, read_only=True))

    async def close(self) -> None:
        """Send away who waits, let the calls in flight end, close."""
        self._closed = True
        self._line.send_away(bundle_closed)
        for connection in (*self._idle, *self._busy):
            await close_connection(connection)
        self._idle.clear()

    async def run(self, call: Call) -> Any:
        """Run a call in its turn."""
        self._line.join(call)
        self._serve()
        if self._line.first() is not None and len(self._busy) + self._opening < self._limit:
            try:
                await self._open_another()
            except BaseException:
                call.waiter.cancel()
                raise
        return await call.waiter

    async def _open_another(self) -> None:
        self._opening += 1
        try:
            connection = await open_connection(self._target, read_only=True)
        except WorkflowAdapterError as error:
            # Those that are open serve whoever waits.
            _logger.warning("no further connection to read on: %s", error)
            return
        finally:
            self._opening -= 1
        if self._closed:
            await close_connection(connection)
        else:
            self._idle.append(connection)
            self._serve()

    def _serve(self) -> None:
        while self._idle and isinstance(call := self._line.first(), Call):
            self._line.leave()
            self._send(self._idle.pop(), call)

    def _send(self, connection: aiosqlite.Connection, call: Call) -> None:
        self._busy.add(connection)
        patience = Patience(call.deadline, call.waiter.done)
        reading = start(connection, lambda opened: call.run(partial(_read, opened, call, patience)))
        reading.add_done_callback(lambda _: self._call_ended(connection, call))

    def _call_ended(self, connection: aiosqlite.Connection, call: Call) -> None:
        self._busy.discard(connection)
        call.settle()
        if not self._closed:
            self._idle.append(connection)
            self._serve()


def _read(opened: SqliteConnection, call: Call, patience: Patience) -> Any:
    opened.file.require()
    return perform(opened, call.operation, patience)
