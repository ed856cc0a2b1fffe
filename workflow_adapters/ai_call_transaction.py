"""log_call on the bundle of a transaction: written with it, and not lost with it."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Self

from anyio.lowlevel import checkpoint

from workflow_adapters.ai_call_buffer import BATCH_SIZE, AICallBuffer
from workflow_adapters.ai_call_queue import DEFAULT_CAPACITY, DEFAULT_TEXT_CAPACITY, AICallQueue
from workflow_adapters.ai_call_records import LoggedCall
from workflow_adapters.ai_call_writes import WriteBatch, write_apart
from workflow_adapters.clock import Clock
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.transaction_scope import Turn
from workflow_adapters.validation import instant


class TransactionAICalls:
    """The calls logged in one transaction or savepoint.

    The backend wraps the whole block, COMMIT or RELEASE included, in `block()`, gives it the way to write as soon as
    the transaction is open, and calls `flush` before each read and before the COMMIT or RELEASE. When the block fails,
    all its calls are handed to `outer`: what was paid stays paid.
    """

    def __init__(self, clock: Clock, outer: AICallBuffer | TransactionAICalls) -> None:
        self._clock = clock
        self._outer = outer
        self._queue = AICallQueue(DEFAULT_CAPACITY, DEFAULT_TEXT_CAPACITY, rouse=lambda: None)
        self._write: WriteBatch | None = None
        self._written: list[LoggedCall] = []
        self._turn = Turn()
        self._lock = threading.RLock()
        self._ended = False

    def log(self, call: CreateAICallInput) -> None:
        """Take a call; after the end of the block it goes to the outer logger. Never raises, never waits."""
        try:
            logged = LoggedCall.of(call, instant("clock", self._clock.now()))
        except Exception as error:  # noqa: BLE001 - log_call never raises, whatever it is given
            self._queue.drop(1, f"a call could not be read ({error!r})")
            return
        self.accept((logged,))

    def accept(self, calls: Sequence[LoggedCall]) -> None:
        """Take calls that were logged elsewhere, in order. Never raises, never waits."""
        with self._lock:
            if not self._ended:
                self._queue.put(calls)
                return
        self._outer.accept(calls)

    def opened(self, write: WriteBatch) -> None:
        """The transaction is open: `write` stores calls in it."""
        self._write = write

    async def flush(self) -> None:
        """Write everything taken so far in the transaction."""
        await checkpoint()
        await self._turn.take()
        try:
            while self._write is not None and (batch := self._queue.oldest(BATCH_SIZE)):
                refused = await write_apart(self._write, [logged.row for logged in batch])
                self._queue.settle(len(batch))
                left_out = {refusal.row.id for refusal in refused}
                self._written.extend(logged for logged in batch if logged.row.id not in left_out)
                if refused:
                    self._queue.drop(len(refused), f"the backend refused them ({refused[0].error!r})")
        finally:
            self._turn.give()

    @asynccontextmanager
    async def block(self) -> AsyncGenerator[Self]:
        """Hand the block's calls to the outer logger if it fails."""
        try:
            yield self
        except BaseException:
            self._outer.accept((*self._written, *self._end()))
            raise
        # Another thread may have logged after the last flush.
        self._outer.accept(self._end())
        if isinstance(self._outer, TransactionAICalls):
            self._outer.keep(self._written)

    def keep(self, written: Sequence[LoggedCall]) -> None:
        """Calls written in a savepoint of this transaction: they share its fate from here on."""
        self._written.extend(written)

    def _end(self) -> list[LoggedCall]:
        with self._lock:
            self._ended = True
            left = self._queue.oldest(self._queue.waiting)
            self._queue.settle(len(left))
            return left
