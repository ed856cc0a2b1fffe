"""One file, one writer, several readers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar
from weakref import finalize

from workflow_adapters.errors import UsageError
from workflow_adapters.sql.statement import Operation
from workflow_adapters.sqlite.calls import Call
from workflow_adapters.sqlite.connection import Target, outlast
from workflow_adapters.sqlite.database import Engine, SqliteDatabase
from workflow_adapters.sqlite.readers import Readers
from workflow_adapters.sqlite.transactions import TransactionDatabase, open_transaction
from workflow_adapters.sqlite.writer import Writer
from workflow_adapters.transaction_scope import inside_transaction_of

T = TypeVar("T")

_logger = logging.getLogger("workflow_adapters.sqlite")


class PooledDatabase(SqliteDatabase):
    """Reads see the last commit and wait for no writer; writes take turns."""

    def __init__(self, engine: Engine, target: Target, *, readers: int) -> None:
        super().__init__(engine)
        self._path = target.path
        self._busy_timeout = target.busy_timeout
        self._forgotten: finalize[[str], PooledDatabase] | None = None
        self._writer = Writer(target)
        self._readers = Readers(target, readers)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Open for the length of the block."""
        try:
            await self.open()
            yield
        finally:
            await self.close()

    async def open(self) -> None:
        """Open the writer and one reader, on the running event loop. `close` is due, however this ends."""
        self.engine.lifecycle.open()
        self._forgotten = finalize(self, _warn_of_forgotten, self._path)
        await self._writer.open()
        await self._readers.open()

    async def close(self) -> None:
        """Close the connections, whatever cancels arrive; in a forked child leave them alone."""
        self.engine.lifecycle.close()
        if self._forgotten is not None:
            self._forgotten.detach()
        if not self.engine.is_forked:
            await outlast(asyncio.ensure_future(self._close()))

    async def read(self, operation: Callable[[], Operation[T]]) -> T:
        self.engine.check()
        return await self._readers.run(Call(operation=operation, deadline=self._deadline()))

    async def write(self, operation: Callable[[], Operation[T]], *, single: bool = False) -> T:
        self._check_write()
        return await self._writer.run(Call(operation=operation, single=single, deadline=self._deadline()))

    def transaction(self) -> AbstractAsyncContextManager[TransactionDatabase]:
        self._check_write()
        return open_transaction(self.engine, self._writer, self._busy_timeout)

    def _check_write(self) -> None:
        self.engine.check()
        if inside_transaction_of(self.engine):
            raise UsageError(
                "a write outside of the open transaction could only wait for that transaction; use its tx, or leave it"
            )

    def _deadline(self) -> float:
        return time.monotonic() + self._busy_timeout

    async def _close(self) -> None:
        try:
            await self._readers.close()
        finally:
            await self._writer.close()


def _warn_of_forgotten(path: str) -> None:
    _logger.warning("the bundle on %s was never closed; leave its 'async with' block", path)
