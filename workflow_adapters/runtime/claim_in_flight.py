"""Claims that are awaited through cancels, since one that is cut off half-way may have happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from workflow_adapters.lifecycle import wait_through_cancel
from workflow_adapters.runtime.task_groups import open_task_group

T = TypeVar("T")


class ClaimInFlight(Generic[T]):
    """One claim, which is answered within `timeout` seconds or ends with a TimeoutError.

    A cancel that comes meanwhile leaves it `patience` seconds to be answered, and `give_back`, which must not raise,
    returns what it took.
    """

    def __init__(
        self,
        claim: Callable[[], Awaitable[T]],
        give_back: Callable[[T], Awaitable[None]],
        *,
        timeout: float,
        patience: float,
    ) -> None:
        self._claim = claim
        self._give_back = give_back
        self._patience = patience
        self._scope = anyio.CancelScope(shield=True, deadline=anyio.current_time() + timeout)
        self._answers: list[T] = []
        self._error: Exception | None = None
        self._ended = anyio.Event()

    def hurry(self) -> None:
        """Leave it no more than its patience."""
        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + self._patience)

    async def answer(self) -> T:
        """Make the claim and wait for its answer."""
        # In tasks of their own: asyncio's task.cancel() reaches through a shield.
        async with open_task_group() as tasks:
            tasks.start_soon(self._run)
            try:
                await self._ended.wait()
            except anyio.get_cancelled_exc_class():
                self.hurry()
                over = anyio.Event()
                tasks.start_soon(self._undo, over)
                await wait_through_cancel(over)
                raise
        if self._error is not None:
            raise self._error
        if not self._answers:
            raise TimeoutError("the claim was not answered in time")
        return self._answers[0]

    async def _run(self) -> None:
        try:
            with self._scope:
                self._answers.append(await self._claim())
        except Exception as error:  # noqa: BLE001  # raised by `answer`, where no task group wraps it
            self._error = error
        finally:
            self._ended.set()

    async def _undo(self, over: anyio.Event) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
                for answer in self._answers:
                    await self._give_back(answer)
        finally:
            over.set()
