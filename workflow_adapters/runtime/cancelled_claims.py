"""Claims that are awaited through cancels, since one that is cut off half-way may have happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from workflow_adapters.lifecycle import wait_through_cancel
from workflow_adapters.runtime.task_groups import open_task_group

T = TypeVar("T")


async def claim_through_cancel(
    claim: Callable[[], Awaitable[T]],
    give_back: Callable[[T], Awaitable[None]],
    *,
    timeout: float,
    patience: float,
) -> T:
    """Await `claim` for `timeout` seconds (TimeoutError).

    A cancel that comes meanwhile leaves it `patience` seconds to be answered, and `give_back`, which must not raise,
    returns what it took.
    """
    call = _Call(claim, timeout)
    # In tasks of their own: asyncio's task.cancel() reaches through a shield.
    async with open_task_group() as tasks:
        tasks.start_soon(call.run)
        try:
            await call.ended.wait()
        except anyio.get_cancelled_exc_class():
            call.hurry(patience)
            over = anyio.Event()
            tasks.start_soon(call.undo, give_back, over)
            await wait_through_cancel(over)
            raise
    return call.result()


class _Call(Generic[T]):
    def __init__(self, claim: Callable[[], Awaitable[T]], timeout: float) -> None:
        self._claim = claim
        self._scope = anyio.CancelScope(shield=True, deadline=anyio.current_time() + timeout)
        self._answers: list[T] = []
        self._error: Exception | None = None
        self.ended = anyio.Event()

    async def run(self) -> None:
        try:
            with self._scope:
                self._answers.append(await self._claim())
        except Exception as error:  # noqa: BLE001  # raised by `result`, where no task group wraps it
            self._error = error
        finally:
            self.ended.set()

    def hurry(self, patience: float) -> None:
        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + patience)

    async def undo(self, give_back: Callable[[T], Awaitable[None]], over: anyio.Event) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self.ended.wait()
                for answer in self._answers:
                    await give_back(answer)
        finally:
            over.set()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        if not self._answers:
            raise TimeoutError("the claim was not answered in time")
        return self._answers[0]
