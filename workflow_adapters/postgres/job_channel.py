"""LISTEN and NOTIFY for new jobs, on a connection of its own and off the path of whoever writes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup

from workflow_adapters.errors import BackendUnavailableError, WorkflowAdapterError
from workflow_adapters.postgres.connection import Connection
from workflow_adapters.postgres.options import MAX_IDENTIFIER_BYTES
from workflow_adapters.postgres.wake_ups import NextDue, WakeUps
from workflow_adapters.transaction_scope import Turn, leave_transactions

_logger = logging.getLogger("workflow_adapters.postgres")

KEEPALIVE_SECONDS: Final = 10.0
_NOTIFY_EVERY: Final = 0.05
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_LAST_WORD_SECONDS: Final = 1.0


class ListenerState(StrEnum):
    """How new jobs of other processes are learnt of."""

    OFF = "off"
    """By looking only: nobody has waited yet, or wake-ups are switched off."""
    CONNECTING = "connecting"
    """By looking only, until LISTEN is established (again)."""
    LISTENING = "listening"


class ListeningConnection(Connection, Protocol):
    """What LISTEN needs besides."""

    async def add_listener(self, channel: str, callback: Any) -> None: ...

    def add_termination_listener(self, callback: Any) -> None: ...

    def remove_termination_listener(self, callback: Any) -> None: ...


class Lines(Protocol):
    """Where connections for the channel come from."""

    def listening(self) -> AbstractAsyncContextManager[ListeningConnection]: ...

    def pooled(self) -> AbstractAsyncContextManager[Connection]: ...


class JobChannel:
    """Tells the bundle's `WakeUps` of other processes' jobs, and other processes of ours.

    LISTEN begins when somebody first waits. The connection proves itself by a round trip every `KEEPALIVE_SECONDS` and
    is made anew when it fails to; whoever waits then looks once. Nothing here ever raises: the looks of `WakeUps`
    do without it.
    """

    def __init__(self, schema: str, wake_ups: WakeUps, lines: Lines, tasks: TaskGroup) -> None:
        self.state = ListenerState.OFF
        self._name = channel_name(schema)
        self._wake_ups = wake_ups
        self._lines = lines
        self._tasks = tasks
        self._line: ListeningConnection | None = None
        self._turn = Turn()
        self._changes = 0
        self._told = 0
        self._notifying = False
        self._closed = False
        self._attempts = 0

    def listen(self) -> None:
        """See to it that somebody listens."""
        if self.state is ListenerState.OFF and not self._closed:
            self.state = ListenerState.CONNECTING
            self._tasks.start_soon(self._listen_for_ever)

    def notify_later(self) -> None:
        """Tell other processes a little later, or on closing, of jobs that somebody else is about to commit."""
        self._changes += 1
        if not self._closed:
            self._tasks.start_soon(self._notify_later)

    def notify(self) -> None:
        """Tell other processes soon, and at most once in 50 ms, that there are jobs."""
        self._changes += 1
        if not self._notifying and not self._closed:
            self._notifying = True
            self._tasks.start_soon(self._notify_of_changes)

    async def close(self) -> None:
        """Say what has not been said yet, and nothing from then on."""
        self._closed = True
        if self._told != self._changes:
            with anyio.move_on_after(_LAST_WORD_SECONDS):
                await self._notify()

    async def _notify_later(self) -> None:
        leave_transactions()
        await anyio.sleep(_NOTIFY_EVERY)
        self.notify()

    async def _notify_of_changes(self) -> None:
        leave_transactions()
        try:
            while self._told != self._changes:
                await self._notify()
                await anyio.sleep(_NOTIFY_EVERY)
        finally:
            self._notifying = False

    async def _notify(self) -> None:
        changes = self._changes
        try:
            async with self._a_line() as connection:
                await connection.fetch("SELECT pg_catalog.pg_notify($1, '')", self._name, timeout=KEEPALIVE_SECONDS)
        except Exception as error:  # noqa: BLE001 - a notification is a courtesy; who waits looks anyway
            _logger.debug("could not notify waiting workers of new jobs: %s", error)
        self._told = changes

    @asynccontextmanager
    async def _a_line(self) -> AsyncGenerator[Connection]:
        """The listener's own connection, whose echo we know, or else any."""
        line = self._line
        if line is None:
            async with self._lines.pooled() as connection:
                yield connection
            return
        await self._turn.take()
        try:
            yield line
        finally:
            self._turn.give()

    async def _listen_for_ever(self) -> None:
        leave_transactions()
        while True:
            try:
                async with self._lines.listening() as connection:
                    await self._listen_on(connection)
            except Exception as error:  # noqa: BLE001 - whatever happens to this connection, the next is tried
                said = error if isinstance(error, WorkflowAdapterError) else f"{type(error).__name__}: {error}"
                _logger.info("LISTEN for new jobs is interrupted: %s", said)
            await anyio.sleep(random.uniform(0.5, 1.0) * min(_FIRST_PAUSE * 2**self._attempts, _LONGEST_PAUSE))
            self._attempts += 1

    async def _listen_on(self, connection: ListeningConnection) -> None:
        """Listen until the connection fails or ends."""
        ended = anyio.Event()

        def on_end(_connection: object) -> None:
            ended.set()

        connection.add_termination_listener(on_end)
        await self._subscribe(connection)
        try:
            self._line, self.state, self._attempts = connection, ListenerState.LISTENING, 0
            self._wake_ups.look()
            while not ended.is_set():
                with anyio.move_on_after(KEEPALIVE_SECONDS):
                    await ended.wait()
                    break
                await self._prove(connection)
        finally:
            self._line, self.state = None, ListenerState.CONNECTING

    async def _subscribe(self, connection: ListeningConnection) -> None:
        async with asyncio.timeout(KEEPALIVE_SECONDS):
            await connection.add_listener(self._name, self._on_notification)

    async def _prove(self, connection: ListeningConnection) -> None:
        """Raise unless the server answers, and says that it knows of us."""
        await self._turn.take()
        try:
            channels = await connection.fetch("SELECT pg_catalog.pg_listening_channels()", timeout=KEEPALIVE_SECONDS)
        finally:
            self._turn.give()
        if self._name not in {row[0] for row in channels}:
            raise BackendUnavailableError("the server does not know any more that this connection listens")

    def _on_notification(self, connection: Any, pid: int, _channel: str, _payload: str) -> None:
        # Our own jobs were announced here when they were written.
        if pid != connection.get_server_pid():
            self._wake_ups.signal()


class JobSignals:
    """What the job queue needs of all this; without a channel, waiting is looking."""

    def __init__(self, wake_ups: WakeUps, channel: JobChannel | None) -> None:
        self._wake_ups = wake_ups
        self._channel = channel

    @property
    def state(self) -> ListenerState:
        return self._channel.state if self._channel is not None else ListenerState.OFF

    def jobs_changed(self) -> None:
        """Jobs that may be due were committed: tell who waits, here and elsewhere."""
        self._wake_ups.signal()
        if self._channel is not None:
            self._channel.notify()

    def jobs_scheduled(self) -> None:
        """Jobs that will be due later were committed: who waits here works out anew until when."""
        self._wake_ups.look()

    def jobs_change_soon(self) -> None:
        """The same for jobs that somebody else is about to commit."""
        asyncio.get_running_loop().call_later(_NOTIFY_EVERY, self._wake_ups.signal)
        if self._channel is not None:
            self._channel.notify_later()

    async def wait(self, timeout: float, next_due: NextDue) -> bool:
        if self._channel is not None:
            self._channel.listen()
        return await self._wake_ups.wait(timeout, next_due)


def channel_name(schema: str) -> str:
    """The channel of a schema's jobs, in this database."""
    name = f"wa_jobs.{schema}"
    if len(name.encode()) <= MAX_IDENTIFIER_BYTES:
        return name
    return f"wa_jobs.{hashlib.sha256(schema.encode()).hexdigest()[:32]}"
