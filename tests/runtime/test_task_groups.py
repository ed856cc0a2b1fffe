"""A cancellation of the task is heard, whatever else happens in the same turn of the loop."""

from __future__ import annotations

import asyncio
import time

import anyio
import pytest

from tests.runtime.support import QUICK
from workflow_adapters.memory.bundle import open_memory
from workflow_adapters.runtime import JobContext, Worker
from workflow_adapters.runtime.task_groups import open_task_group

pytestmark = pytest.mark.asyncio


async def wait_for_both(*, cancel_first: bool) -> None:
    """Wait with a deadline at which the task is cancelled, too."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    deadline = loop.time() + 0.01
    async with open_task_group() as tasks:
        tasks.start_soon(anyio.sleep, 30)
        if cancel_first:
            loop.call_at(deadline - 0.000001, task.cancel)
        with anyio.CancelScope(deadline=deadline):
            if not cancel_first:
                loop.call_at(deadline + 0.000001, task.cancel)
            time.sleep(0.02)  # noqa: ASYNC251 - so that the loop finds both due in one turn
            await anyio.sleep_forever()


@pytest.mark.parametrize("cancel_first", [True, False])
async def test_cancelled_together_with_a_deadline(cancel_first: bool) -> None:
    task = asyncio.create_task(wait_for_both(cancel_first=cancel_first))
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_cancellation_of_the_group_stays_its_own() -> None:
    async with open_task_group() as tasks:
        tasks.start_soon(anyio.sleep, 30)
        tasks.cancel_scope.cancel()
        await anyio.sleep(30)


async def test_a_failing_task_is_what_comes_out() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="broken")):
        async with open_task_group() as tasks:
            tasks.start_soon(fail)
            await anyio.sleep(30)


async def test_an_idle_worker() -> None:
    async def handler(ctx: JobContext) -> None:
        raise AssertionError("no job was enqueued")

    async with open_memory() as adapters:
        for number in range(200):
            task = asyncio.create_task(Worker(adapters.job_queue, handler, **QUICK).run())
            await asyncio.sleep(0.001 + 0.0001 * (number % 100))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
