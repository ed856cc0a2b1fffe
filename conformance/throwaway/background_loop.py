"""An event loop for callers that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from conformance.throwaway.errors import ThrowawayError

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines to their end for a caller that may itself be inside any event loop, or none.

    The thread is a daemon: a program that forgets to close must still be able to end.
    """

    def __init__(self) -> None:
        self._is_running = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="throwaway-postgres", daemon=True
        )
        self._thread.start()
        self._is_running.wait()

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Raises ThrowawayError where `work` takes longer than `seconds`."""
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), self._loop)
        try:
            return future.result()
        except TimeoutError:
            raise ThrowawayError(f"the server has not answered within {seconds:.0f} s") from None
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancels what still runs."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_over = asyncio.Event()
        self._is_running.set()
        await self._is_over.wait()
