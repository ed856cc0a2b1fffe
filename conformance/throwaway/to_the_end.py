"""Blocking work for callers in an event loop that may be cancelled, without leaving the work half done."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TypeVar

import anyio
from anyio import to_thread

T = TypeVar("T")


async def to_the_end(function: Callable[[], T]) -> T:
    """Runs `function` in a thread and waits for it through every cancellation, the last of which is then raised."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="throwaway-postgres-call")
    thread.start()
    cancellation: BaseException | None = None
    while thread.is_alive():
        try:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(thread.join)
        except anyio.get_cancelled_exc_class() as error:
            # asyncio's own cancel pays no heed to the shield.
            cancellation = error
    if cancellation is not None and outcome.exception() is None:
        raise cancellation
    return outcome.result()


@contextlib.asynccontextmanager
async def in_threads(context: AbstractContextManager[T]) -> AsyncGenerator[T]:
    """Enters and leaves a blocking context in threads; what it holds is let go however the entry was cancelled."""
    try:
        yield await to_the_end(context.__enter__)
    finally:
        await to_the_end(lambda: context.__exit__(None, None, None))
