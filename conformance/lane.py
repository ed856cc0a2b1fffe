"""A thread with an event loop of its own, in which adapters run: what hangs there can be left behind.

A clause may meet an adapter that blocks the loop or swallows its cancellation. Whoever waits for it waits in another
thread, for a bounded time, and then goes on with a new lane.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ctypes
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

from conformance.choice import Loop
from conformance.concurrency import is_asked_for
from conformance.leaks import OWN

T = TypeVar("T")

_START_SECONDS: Final = 10.0
_SLICE_SECONDS: Final = 0.1
_RESPONSE_SECONDS: Final = 0.25
_STOP_PAUSE: Final = 0.02
_STOP_ATTEMPTS: Final = 20


class LaneLostError(Exception):
    """What ran in the lane did not end in time; the lane is left behind."""

    def __init__(self, blocks_the_loop: bool) -> None:
        super().__init__("blocks the event loop" if blocks_the_loop else "ignores its cancellation")
        self.blocks_the_loop = blocks_the_loop


class StrayError(Exception):
    """An exception that ends tasks, loops or processes, raised by what was called in the lane."""


@dataclass(slots=True)
class _Job:
    function: Callable[[], Awaitable[Any]]
    future: concurrent.futures.Future[Any] = field(default_factory=concurrent.futures.Future[Any])


class Lane:
    """Runs async functions for synchronous callers. `tasks` is for what outlives a call, and used inside the loop."""

    tasks: TaskGroup

    def __init__(self, loop: Loop = "asyncio") -> None:
        self._kind: Loop = loop
        self._jobs: deque[_Job | None] = deque()
        self._call_soon: Callable[[Callable[[], object]], object] = lambda _: None
        self._has_jobs: anyio.Event | None = None
        self._ready = threading.Event()
        self._native: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="conformance-lane", daemon=True)
        self._thread.start()
        self._ready.wait(_START_SECONDS)

    def call(self, function: Callable[[], Awaitable[T]], until: Callable[[], float]) -> T:
        """Run the function in the lane's loop and give its value back.

        `until` says up to which monotonic instant that may take; the function may change it while it runs. After it:
        LaneLostError, and the lane is good for nothing but to be abandoned.
        """
        if not self._thread.is_alive():
            raise LaneLostError(blocks_the_loop=False)
        job = _Job(function)
        self._post(job)
        while not job.future.done() and (left := until() - time.monotonic()) > 0:
            # In slices: the function may also bring the instant forward.
            concurrent.futures.wait([job.future], min(left, _SLICE_SECONDS))
        if not job.future.done():
            raise LaneLostError(self._is_blocked())
        return cast("T", job.future.result())

    def close(self, seconds: float) -> bool:
        """End the loop; False, and the lane is left behind, when it does not end in time."""
        self._post(None)
        self._thread.join(seconds)
        if self._thread.is_alive():
            self.abandon()
        return not self._thread.is_alive()

    def abandon(self) -> None:
        """Make the thread end if anything can; it is a daemon, so it does not hold the process up in any case."""
        if self._is_blocked() and self._thread.ident is not None:
            # Python code that never awaits: an exception is raised between two of its instructions.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(_LaneAbandonedError)
            )
        for _ in range(_STOP_ATTEMPTS):
            if not self._thread.is_alive():
                return
            if self._native is not None:
                # A task that swallows its cancellation keeps the runner from closing the loop, too: stop it every time.
                self._in_loop(self._native.stop)
            time.sleep(_STOP_PAUSE)

    def _is_blocked(self) -> bool:
        answered = threading.Event()
        self._in_loop(answered.set)
        return not answered.wait(_RESPONSE_SECONDS)

    def _post(self, job: _Job | None) -> None:
        self._jobs.append(job)
        self._in_loop(self._notice)

    def _in_loop(self, callback: Callable[[], object]) -> None:
        # A loop that has ended says so with a RuntimeError, asyncio's and trio's alike.
        with contextlib.suppress(RuntimeError):
            self._call_soon(callback)

    def _notice(self) -> None:
        if self._has_jobs is not None:
            self._has_jobs.set()

    def _run(self) -> None:
        try:
            anyio.run(self._main, backend=self._kind)
        except BaseException:  # noqa: BLE001 - an abandoned loop ends as it can; nobody is left to tell
            return
        finally:
            for job in self._jobs:
                if job is not None and not job.future.done():
                    job.future.set_exception(LaneLostError(blocks_the_loop=False))

    async def _main(self) -> None:
        self._connect()
        self._ready.set()
        async with anyio.create_task_group() as tasks:
            self.tasks = tasks
            while True:
                self._has_jobs = anyio.Event()
                while self._jobs:
                    job = self._jobs.popleft()
                    if job is None:
                        tasks.cancel_scope.cancel()
                        return
                    tasks.start_soon(_settle, job, name=f"{OWN}call")
                await self._has_jobs.wait()

    def _connect(self) -> None:
        if self._kind == "trio":
            import trio

            self._call_soon = trio.lowlevel.current_trio_token().run_sync_soon
        else:
            self._native = asyncio.get_running_loop()
            # What abandoned tasks leave unsaid is not the next test's warning.
            self._native.set_exception_handler(lambda _loop, _context: None)
            self._call_soon = self._native.call_soon_threadsafe


class _LaneAbandonedError(BaseException):
    pass


async def _settle(job: _Job) -> None:
    try:
        value = await job.function()
    except Exception as error:  # noqa: BLE001 - the caller's, in another thread
        job.future.set_exception(error)
    except BaseException as error:
        if is_asked_for(error) or isinstance(error, _LaneAbandonedError):
            job.future.set_exception(LaneLostError(blocks_the_loop=False))
            raise
        job.future.set_exception(StrayError(f"{type(error).__name__} was raised, and nobody had asked for it"))
    else:
        job.future.set_result(value)
