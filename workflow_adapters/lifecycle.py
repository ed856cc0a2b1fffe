"""The life of what is opened: it belongs to one event loop, from open to close.

Nothing here touches an event loop when it is imported or constructed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Self

import anyio

from workflow_adapters.errors import UsageError


class EventLoop:
    """A running event loop of asyncio or trio, comparable, and reachable from any thread."""

    __slots__ = ("_call_soon", "_token")

    def __init__(self, token: object, call_soon: Callable[[Callable[[], object]], object]) -> None:
        self._token = token
        self._call_soon = call_soon

    @classmethod
    def current(cls) -> Self | None:
        """The loop that runs the calling code, or None outside of any."""
        # Trio goes first: as a guest it runs inside the callbacks of an asyncio loop.
        trio: Any = sys.modules.get("trio")
        if trio is not None and trio.lowlevel.in_trio_task():
            token = trio.lowlevel.current_trio_token()
            return cls(token, token.run_sync_soon)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
        return cls(loop, loop.call_soon_threadsafe)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventLoop) and self._token is other._token

    def __hash__(self) -> int:
        return id(self._token)

    def call_soon(self, callback: Callable[[], object]) -> bool:
        """Have the loop call `callback`, from any thread; False when the loop has ended."""
        try:
            self._call_soon(callback)
        except RuntimeError:  # asyncio: "Event loop is closed"; trio.RunFinishedError is one too
            return False
        return True


class Lifecycle:
    """Opened in one event loop and closed once. Every call on the thing asks `check` first.

    `what` names it in messages, for instance "this bundle".
    """

    __slots__ = ("_closed", "_loop", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._loop: EventLoop | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def loop(self) -> EventLoop | None:
        """The loop it was opened in; None before that."""
        return self._loop

    def open(self) -> EventLoop:
        """Belong to the running loop from now on. It can be opened once: UsageError the second time."""
        if self._loop is not None:
            raise UsageError(f"{self._what} has been opened before; make a new one")
        self._loop = EventLoop.current()
        if self._loop is None:
            raise UsageError(f"{self._what} can only be opened inside an event loop of asyncio or trio")
        return self._loop

    def check(self) -> None:
        """UsageError before open, after close, and in another event loop than the one of open."""
        if self._closed:
            raise UsageError(f"{self._what} is closed; open a new one")
        if self._loop is None:
            raise UsageError(f"{self._what} is not open; enter it with 'async with' first")
        if EventLoop.current() != self._loop:
            raise UsageError(f"{self._what} belongs to another event loop; open one in this loop")

    def close(self) -> bool:
        """Refuse calls from now on; True the first time, False ever after."""
        first, self._closed = not self._closed, True
        return first


async def wait_through_cancel(event: anyio.Event) -> None:
    """Wait for `event` whatever cancels arrive meanwhile, and only then let the cancel out.

    For the end of work that runs in another task. A shield alone would not do: asyncio's task.cancel() reaches
    through it.
    """
    interrupted: BaseException | None = None
    with anyio.CancelScope(shield=True):
        while not event.is_set():
            try:
                await event.wait()
            except anyio.get_cancelled_exc_class() as cancelled:
                interrupted = cancelled
    if interrupted is not None:
        raise interrupted
