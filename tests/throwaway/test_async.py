"""The server for event loops: nothing is left half done, however a call is cancelled."""

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any, Self

import anyio
import pytest

from conformance.throwaway import AsyncThrowawayServer, NotAvailableError, ThrowawayServer, start_postgres
from conformance.throwaway import start as start_module
from conformance.throwaway.to_the_end import in_threads, to_the_end
from tests.throwaway.support import is_gone, run_id

BACKENDS = ["asyncio", "trio"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_everything_awaited(backend: str, query: Callable[..., Any]) -> None:
    async def main() -> str:
        async with start_postgres("embedded-16") as server:
            assert (server.rung, server.version, server.reasons) == ("embedded-16", "16.14", ())
            template = await server.create_database()
            query(template, "CREATE TABLE t AS SELECT 1 AS a")
            async with server.database(template) as dsn:
                await server.kill()
                await server.restart()
                assert query(dsn, "SELECT a FROM t") == [(1,)]
                await server.reset(dsn)
                assert query(dsn, "SELECT a FROM t") == []
            await server.drop_database(template)
            await server.stop()
            assert server.dsn not in repr(server)
            return run_id(server.blocking)

    assert is_gone(anyio.run(main, backend=backend), "embedded-16")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_loop_goes_on_while_the_server_starts(backend: str) -> None:
    async def main() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.sleep(0.01)

        async with anyio.create_task_group() as group:
            group.start_soon(count)
            async with start_postgres("embedded-16"):
                pass
            group.cancel_scope.cancel()
        return turns

    assert anyio.run(main, backend=backend) > 10


def test_no_server_is_the_same_error() -> None:
    async def main() -> None:
        async with start_postgres("embedded-99"):
            pass

    with pytest.raises(NotAvailableError, match="embedded-99"):
        anyio.run(main)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ThrowawayServer]:
    """Servers made so far."""
    made: list[ThrowawayServer] = []

    class Noted(ThrowawayServer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(start_module, "ThrowawayServer", Noted)
    return made


@pytest.mark.parametrize("backend", BACKENDS)
def test_cancelled_while_starting(backend: str, started: list[ThrowawayServer]) -> None:
    async def main() -> None:
        with anyio.move_on_after(0.1):
            async with start_postgres("embedded-16"):
                await anyio.sleep_forever()

    anyio.run(main, backend=backend)
    assert is_gone(run_id(started[0]), "embedded-16")


@pytest.mark.parametrize("cancels", [1, 2])
def test_cancelled_natively_while_starting(cancels: int, started: list[ThrowawayServer]) -> None:
    async def hold() -> None:
        async with start_postgres("embedded-16"):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(hold())
        for _ in range(cancels):
            await asyncio.sleep(0.1)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert is_gone(run_id(started[0]), "embedded-16")


@pytest.mark.parametrize("cancels", [1, 2])
def test_cancelled_natively_while_in_use(cancels: int, started: list[ThrowawayServer]) -> None:
    async def hold(is_started: asyncio.Event) -> None:
        async with start_postgres("embedded-16") as server:
            assert isinstance(server, AsyncThrowawayServer)
            is_started.set()
            await asyncio.sleep(60)

    async def main() -> None:
        is_started = asyncio.Event()
        task = asyncio.create_task(hold(is_started))
        await is_started.wait()
        for _ in range(cancels):
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert is_gone(run_id(started[0]), "embedded-16")


class Gate:
    """A blocking context whose entry waits to be let through."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.log: list[str] = []

    def __enter__(self) -> Self:
        self.open.wait(30)
        self.log.append("entered")
        return self

    def __exit__(self, *_: object) -> None:
        self.log.append("left")


def test_an_entry_cancelled_twice_is_finished_and_undone() -> None:
    gate = Gate()

    async def enter() -> None:
        async with in_threads(gate):
            gate.log.append("inside")

    async def main() -> None:
        task = asyncio.create_task(enter())
        for _ in range(2):
            await asyncio.sleep(0)
            task.cancel()
        assert not task.done()
        gate.open.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert gate.log == ["entered", "left"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failure_is_raised_as_it_is(backend: str) -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        anyio.run(functools.partial(to_the_end, fail), backend=backend)
