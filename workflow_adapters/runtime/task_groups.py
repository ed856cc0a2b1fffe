"""Task groups out of which no cancellation gets lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def open_task_group() -> AsyncGenerator[TaskGroup]:
    """`anyio.create_task_group`, but whoever cancels the task that runs the block is always heard.

    A native ``task.cancel()`` that arrives in the same turn of the loop as a deadline carries the deadline's name. A
    task group ends its own tasks when it sees it, and then takes it for its own cancellation: the block would end as if
    nothing had happened, and its task would go on.
    """
    cancelled: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except anyio.get_cancelled_exc_class() as error:
            if not tasks.cancel_scope.cancel_called:
                cancelled = error
            raise
    if cancelled is not None:
        raise cancelled
