"""One event loop from open to close, and waiting through cancels."""

import asyncio
import threading

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from workflow_adapters.errors import UsageError
from workflow_adapters.lifecycle import EventLoop, Lifecycle, wait_through_cancel


def test_outside_of_a_loop_nothing_can_be_opened_or_called() -> None:
    life = Lifecycle("this bundle")
    with pytest.raises(UsageError, match="not open"):
        life.check()
    with pytest.raises(UsageError, match="event loop"):
        life.open()


@pytest.mark.anyio
async def test_open_check_close() -> None:
    life = Lifecycle("this bundle")
    life.open()
    life.check()
    assert life.close()
    assert not life.close()
    with pytest.raises(UsageError, match="closed"):
        life.check()
    with pytest.raises(UsageError, match="opened before"):
        life.open()


@pytest.mark.anyio
@pytest.mark.parametrize("other", ["asyncio", "trio"])
async def test_another_loop_is_refused_whatever_its_library(other: str) -> None:
    life = Lifecycle("this bundle")
    life.open()

    async def call() -> None:
        life.check()

    def in_another_loop() -> None:
        anyio.run(call, backend=other)

    with pytest.raises(UsageError, match="another event loop"):
        await anyio.to_thread.run_sync(in_another_loop)
    with pytest.raises(UsageError, match="another event loop"):
        await anyio.to_thread.run_sync(life.check)
    life.check()


@pytest.mark.anyio
async def test_a_loop_is_reached_from_a_thread_until_it_ends() -> None:
    loop = EventLoop.current()
    assert loop is not None
    assert loop == EventLoop.current()
    reached = anyio.Event()
    thread = threading.Thread(target=loop.call_soon, args=(reached.set,))
    thread.start()
    with anyio.fail_after(5):
        await reached.wait()
    thread.join()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_has_ended_is_reported(backend: str) -> None:
    async def current() -> EventLoop | None:
        return EventLoop.current()

    loop = anyio.run(current, backend=backend)
    assert loop is not None
    assert not loop.call_soon(lambda: None)
    assert EventLoop.current() is None


@pytest.mark.anyio
async def test_a_cancelled_scope_waits_for_the_event() -> None:
    event = anyio.Event()
    steps: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            try:
                await wait_through_cancel(event)
                await anyio.lowlevel.checkpoint()
            finally:
                steps.append("let go")

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            steps.append("set")
            event.set()
    assert steps == ["set", "let go"]


@pytest.mark.asyncio
async def test_two_native_cancels_wait_for_the_event() -> None:
    event = anyio.Event()
    task = asyncio.create_task(wait_through_cancel(event))
    await anyio.wait_all_tasks_blocked()
    for _ in range(2):
        task.cancel()
        await anyio.wait_all_tasks_blocked()
        assert not task.done()
    event.set()
    with pytest.raises(asyncio.CancelledError):
        await task
