"""One file, one writer, several readers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

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


class PooledDatabase(SqliteDatabase):
    """Reads see the last commit and wait for no writer; writes take turns."""

    def __init__(self, engine: Engine, target: Target, *, readers: int) -> None:
        super().__init__(engine)
        self._busy_timeout = target.busy_timeout
        self._writer = Writer(target)
        self._readers = Readers(target, readers)

    async def open(self) -> None:
        self.engine.lifecycle.open()
        try:
            await self._writer.open()
            await self._readers.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connections, whatever cancels arrive; in a forked child leave them alone."""
        self.engine.lifecycle.close()
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
