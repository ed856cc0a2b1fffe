"""Claims that are awaited through cancels, since one that is cut off half-way may have happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

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
    answers: list[T] = []
    errors: list[Exception] = []
    ended, over = anyio.Event(), anyio.Event()
    scope = anyio.CancelScope(shield=True, deadline=anyio.current_time() + timeout)

    # In tasks of their own: asyncio's task.cancel() reaches through a shield.
    async def call() -> None:
        try:
            with scope:
                answers.append(await claim())
        except Exception as error:  # noqa: BLE001  # raised below, where no task group wraps it
            errors.append(error)
        finally:
            ended.set()

    async def end() -> None:
        try:
            with anyio.CancelScope(shield=True):
                await ended.wait()
                if answers:
                    await give_back(answers[0])
        finally:
            over.set()

    async with open_task_group() as tasks:
        tasks.start_soon(call)
        try:
            await ended.wait()
        except anyio.get_cancelled_exc_class():
            scope.deadline = min(scope.deadline, anyio.current_time() + patience)
            tasks.start_soon(end)
            await wait_through_cancel(over)
            raise
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError("the claim was not answered in time")
    return answers[0]
