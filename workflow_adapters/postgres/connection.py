"""What the adapters need of an asyncpg connection, and work on one that no cancel may leave half done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal, Protocol, TypeVar

import anyio
import asyncpg

from workflow_adapters.lifecycle import wait_through_cancel

T = TypeVar("T")


class Connection(Protocol):
    """An asyncpg connection, or a pool's proxy for one."""

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Any]: ...

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str: ...

    def is_in_transaction(self) -> bool: ...

    def is_closed(self) -> bool: ...

    def terminate(self) -> None: ...

    def get_server_pid(self) -> int: ...

    async def reset(self, *, timeout: float | None = None) -> None: ...

    def transaction(self, *, isolation: Literal["read_committed"]) -> Transaction: ...


class Transaction(Protocol):
    """asyncpg's own, so that whoever is handed the connection may open savepoints on it by asyncpg's means."""

    async def start(self) -> None: ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, extype: object, ex: object, tb: object) -> None: ...


def is_lost(connection: Connection) -> bool:
    """Whether a connection is closed. A pool detaches its proxy from one that is, and the proxy then refuses calls."""
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        return True


def discard(connection: Connection) -> None:
    """End a connection that is not to be used again, whatever has become of it."""
    if not is_lost(connection):
        connection.terminate()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` in a task of its own through cancels of either kind, and only then let the cancel out.

    For the end of a transaction and the return of a connection, each of which must have bounds of its own.
    """
    task = asyncio.create_task(work)
    ended = anyio.Event()
    task.add_done_callback(lambda _: ended.set())
    try:
        await wait_through_cancel(ended)
    except BaseException:
        if not task.cancelled():
            task.exception()  # seen, so that it is not reported as lost: the cancel goes first
        raise
    return task.result()


async def settle(connection: Connection, limit: float) -> bool:
    """Bring a connection that was interrupted to rest, outside of any transaction; False where that fails.

    asyncpg asks the server to cancel what was running; its next statement waits for the answer.
    """
    try:
        if not connection.is_in_transaction():
            await connection.execute("SELECT 1", timeout=limit)
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK", timeout=limit)
    except Exception:  # noqa: BLE001 - whatever it is, this connection is not used again
        return False
    return not connection.is_in_transaction()
