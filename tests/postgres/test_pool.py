"""Our own pool, with connections that are not there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from workflow_adapters import BackendBusyError, BackendUnavailableError, UsageError
from workflow_adapters.postgres.pool import ConnectionPool

pytestmark = pytest.mark.asyncio


class Fake:
    """A connection that is at rest until it is told otherwise."""

    def __init__(self) -> None:
        self.closed = False
        self.in_transaction = False
        self.is_stuck = False
        self.ran: list[str] = []

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        self.ran.append(query)
        if self.is_stuck:
            raise TimeoutError
        if query == "ROLLBACK":
            self.in_transaction = False
        return query

    def is_in_transaction(self) -> bool:
        return self.in_transaction

    def is_closed(self) -> bool:
        return self.closed

    def terminate(self) -> None:
        self.closed = True


class Server:
    """Opens connections, as long as it is up."""

    def __init__(self) -> None:
        self.opened: list[Fake] = []
        self.is_up = True
        self.lets_in = asyncio.Event()
        self.lets_in.set()

    async def connect(self) -> Any:
        await asyncio.sleep(0)
        await self.lets_in.wait()
        if not self.is_up:
            raise BackendUnavailableError("down")
        self.opened.append(Fake())
        return self.opened[-1]

    def pool(self, size: int = 2, **options: Any) -> ConnectionPool:
        chosen: dict[str, Any] = {"limit": 30.0, "idle_limit": None, "acquire_timeout": 5.0, "max_idle": 60.0}
        return ConnectionPool(self.connect, size=size, **{**chosen, **options})


@pytest.fixture
def server() -> Server:
    return Server()


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_connections_are_opened_when_needed_and_used_again_last_first(server: Server) -> None:
    pool = server.pool()
    first, second = await pool.acquire(), await pool.acquire()
    await pool.release(first)
    await pool.release(second)
    assert await pool.acquire() is second
    assert len(server.opened) == 2
    assert pool.stats == (1, 1, 0)


async def test_who_waits_longest_gets_the_next(server: Server) -> None:
    pool = server.pool(size=1)
    held = await pool.acquire()
    order: list[str] = []

    async def take(name: str) -> None:
        connection = await pool.acquire()
        order.append(name)
        await pool.release(connection)

    tasks = [asyncio.create_task(take(name)) for name in ("a", "b", "c")]
    await turns()
    assert pool.stats == (1, 0, 3)
    await pool.release(held)
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "c"]
    assert len(server.opened) == 1


async def test_a_wait_that_takes_too_long_is_an_error_and_costs_nothing(server: Server) -> None:
    pool = server.pool(size=1, acquire_timeout=0.0)
    held = await pool.acquire()
    with pytest.raises(BackendBusyError, match="within 0 s: all 1 are in use"):
        await pool.acquire()
    assert pool.stats == (1, 0, 0)
    await pool.release(held)
    assert await pool.acquire() is held


async def test_a_connection_handed_to_a_task_just_cancelled_goes_to_the_next(server: Server) -> None:
    pool = server.pool(size=1)
    held = await pool.acquire()
    cancelled, waiting = asyncio.create_task(pool.acquire()), asyncio.create_task(pool.acquire())
    await turns()
    # The turn is given before the task that waited for it runs again, and then it is cancelled.
    await pool.release(held)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert cancelled.cancelled()
    assert await waiting is held
    await pool.release(held)
    assert pool.stats == (0, 1, 0)


async def test_a_failure_to_connect_costs_no_slot(server: Server) -> None:
    pool = server.pool(size=1)
    server.is_up = False
    for _ in range(3):
        with pytest.raises(BackendUnavailableError):
            await pool.acquire()
    server.is_up = True
    await pool.release(await pool.acquire())
    assert pool.stats == (0, 1, 0)


async def test_a_cancel_while_connecting_costs_no_slot(server: Server) -> None:
    pool = server.pool(size=1)
    task = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await pool.release(await pool.acquire())
    assert pool.stats == (0, 1, 0)


async def test_what_was_closed_meanwhile_is_not_handed_out(server: Server) -> None:
    pool = server.pool()
    first, second = await pool.acquire(), await pool.acquire()
    await pool.release(first)
    first.terminate()
    second.terminate()
    await pool.release(second)
    assert await pool.acquire() is server.opened[2]
    assert pool.stats == (1, 0, 0)


@pytest.mark.parametrize("in_transaction", [True, False])
async def test_an_interrupted_connection_is_brought_to_rest(server: Server, in_transaction: bool) -> None:
    pool = server.pool()
    connection = await pool.acquire()
    server.opened[0].in_transaction = in_transaction
    await pool.recover(connection)
    assert server.opened[0].ran == (["ROLLBACK"] if in_transaction else ["SELECT 1"])
    assert pool.stats == (0, 1, 0)


async def test_one_that_does_not_come_to_rest_is_done_without(server: Server) -> None:
    pool = server.pool()
    connection = await pool.acquire()
    server.opened[0].is_stuck = True
    await pool.recover(connection)
    assert server.opened[0].closed
    assert pool.stats == (0, 0, 0)


async def test_invalidated_connections_are_not_used_again(server: Server) -> None:
    pool = server.pool()
    used, idle = await pool.acquire(), await pool.acquire()
    await pool.release(idle)
    await pool.invalidate()
    assert server.opened[1].closed
    assert not server.opened[0].closed
    await pool.release(used)
    assert server.opened[0].closed
    assert await pool.acquire() is server.opened[2]


async def test_nor_are_those_that_were_being_opened_then(server: Server) -> None:
    pool = server.pool()
    server.lets_in.clear()
    opening = asyncio.create_task(pool.acquire())
    await turns()
    await pool.invalidate()
    server.lets_in.set()
    await pool.release(await opening)
    assert server.opened[0].closed


async def test_what_lies_idle_for_long_is_closed(server: Server) -> None:
    pool = server.pool(max_idle=0.0)
    await pool.release(await pool.acquire())
    assert pool.stats == (0, 1, 0)
    await turns()
    assert server.opened[0].closed
    assert pool.stats == (0, 0, 0)


@pytest.mark.parametrize("kept", [True, False])
async def test_a_call_that_never_ends_is_cut_but_no_transaction(server: Server, kept: bool) -> None:
    pool = server.pool(limit=0.0, idle_limit=60.0)
    assert pool.call_limit is None
    connection = await pool.acquire()
    if kept:
        pool.keep(connection)
    await turns()
    assert server.opened[0].closed is not kept
    await pool.release(connection)
    await pool.close(1)


async def test_closing_waits_for_those_in_use_but_not_for_ever(server: Server) -> None:
    pool = server.pool()
    first, second = await pool.acquire(), await pool.acquire()
    await pool.release(first)
    await pool.close(0.0)
    assert server.opened[0].closed
    assert server.opened[1].closed
    await pool.release(second)
    with pytest.raises(UsageError, match="closed"):
        await pool.acquire()


async def test_closing_ends_as_soon_as_all_are_back(server: Server) -> None:
    pool = server.pool(size=1)
    held = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await turns()
    closing = asyncio.create_task(pool.close(60))
    with pytest.raises(UsageError, match="closed while this call waited"):
        await waiting
    assert not closing.done()
    await pool.release(held)
    await turns()
    assert closing.done()
    assert server.opened[0].closed


async def test_a_connection_that_opens_after_the_pool_closed_is_not_used(server: Server) -> None:
    pool = server.pool()
    server.lets_in.clear()
    opening = asyncio.create_task(pool.acquire())
    await turns()
    await pool.close(0.0)
    server.lets_in.set()
    with pytest.raises(UsageError, match="closed while this call connected"):
        await opening
    assert server.opened[0].closed


async def test_closing_waits_for_those_that_connect(server: Server) -> None:
    pool = server.pool()

    async def call() -> None:
        await pool.release(await pool.acquire())

    server.lets_in.clear()
    calling = asyncio.create_task(call())
    await turns()
    closing = asyncio.create_task(pool.close(60))
    await turns()
    assert not closing.done()
    server.lets_in.set()
    await turns()
    assert closing.done()
    await calling
    assert server.opened[0].closed
