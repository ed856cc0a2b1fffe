"""A caller's asyncpg pool. It is never closed, and nothing of its connections' settings is needed or changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import asyncpg

from workflow_adapters.errors import BackendBusyError, UsageError
from workflow_adapters.postgres.connection import Connection, discard, is_lost, settle, to_the_end
from workflow_adapters.postgres.errors import connecting_failed
from workflow_adapters.postgres.pool_port import PoolStats

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

_SETTLE_SECONDS: Final = 5.0


class BorrowedPool:
    """asyncpg's pool resets a connection that comes back, which costs a round trip for each call."""

    def __init__(self, pool: asyncpg.Pool[Any], *, limit: float, acquire_timeout: float) -> None:
        self.limit = limit
        self.call_limit = limit
        self.idle_limit = None
        self._pool = pool
        self._acquire_timeout = acquire_timeout
        self._in_use = 0
        self._emptied: asyncio.Future[None] | None = None

    @property
    def stats(self) -> PoolStats:
        """Of our own calls; what waits in asyncpg's pool can not be told."""
        return PoolStats(self._in_use, self._pool.get_idle_size(), 0)

    async def acquire(self) -> Connection:
        try:
            async with asyncio.timeout(self._acquire_timeout):
                connection = await self._pool.acquire()
        except TimeoutError as error:
            raise BackendBusyError(
                f"the asyncpg pool gave no connection within {self._acquire_timeout:g} s: {self._pool.get_size()}"
                f" of at most {self._pool.get_max_size()} are open, {self._pool.get_idle_size()} idle"
            ) from error
        except asyncpg.InterfaceError as error:
            raise UsageError(f"the asyncpg pool that was handed in can not be used: {error}") from error
        except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError) as error:
            raise connecting_failed(error) from error
        self._in_use += 1
        return cast("Connection", connection)

    def keep(self, connection: Connection) -> None:
        pass

    async def release(self, connection: Connection) -> None:
        self._in_use -= 1
        if self._emptied is not None and not self._in_use and not self._emptied.done():
            self._emptied.set_result(None)
        # A connection that broke on its way back is replaced by the pool; what was done on it is done.
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            await to_the_end(self._pool.release(cast("PoolConnectionProxy[Any]", connection), timeout=_SETTLE_SECONDS))

    async def recover(self, connection: Connection) -> None:
        try:
            # Otherwise the pool itself would find the open transaction and complain about it.
            if not is_lost(connection) and not await settle(connection, _SETTLE_SECONDS):
                discard(connection)
        finally:
            await self.release(connection)

    async def invalidate(self) -> None:
        await self._pool.expire_connections()

    async def close(self, timeout: float) -> None:
        if self._in_use:
            self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._emptied], timeout=timeout)
