"""The buffer behind log_call, the same for every backend.

log_call only appends to a queue; a writer task stores what has gathered, a batch at a time, in order. While the backend
is out the calls wait and the writer tries again with growing pauses. The calls of a transaction's bundle take another
way: `workflow_adapters.ai_call_transaction`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final, Self

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from workflow_adapters.ai_call_queue import DEFAULT_CAPACITY, DEFAULT_TEXT_CAPACITY, AICallQueue
from workflow_adapters.ai_call_records import LoggedCall
from workflow_adapters.ai_call_writes import Refusal, WriteBatch, write_apart
from workflow_adapters.clock import Clock
from workflow_adapters.errors import BackendBusyError, BackendError, SchemaError, UsageError, WorkflowAdapterError
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.lifecycle import Lifecycle, wait_through_cancel
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.transaction_scope import inside_transaction_of, leave_transactions
from workflow_adapters.validation import instant

BATCH_SIZE: Final = 500
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_FORGOTTEN_AFTER: Final = 2.0

_logger = logging.getLogger("workflow_adapters.ai_calls")


class AICallBuffer:
    """Calls that wait to be written, and the task that writes them.

    `async with buffer.running():` owns the writer task; it is entered and left in one task, and leaving it writes what
    is left, for at most `close_timeout`. `log` may be called from any thread at any time. `one_writer` is the owner of
    the transactions (see `transaction_scope`) that keep this writer waiting, where a backend has one writer at a time.
    """

    def __init__(
        self,
        write: WriteBatch,
        clock: Clock,
        *,
        capacity: int = DEFAULT_CAPACITY,
        text_capacity: int = DEFAULT_TEXT_CAPACITY,
        flush_timeout: timedelta = timedelta(seconds=5),
        close_timeout: timedelta = timedelta(seconds=5),
        one_writer: object = None,
    ) -> None:
        self._write = write
        self._clock = clock
        self._flush_timeout = flush_timeout.total_seconds()
        self._close_timeout = close_timeout.total_seconds()
        self._one_writer = one_writer
        self._lifecycle = Lifecycle("this AI call logger")
        self._queue = AICallQueue(capacity, text_capacity, self._rouse)
        self._fault: WorkflowAdapterError | None = None

    @property
    def dropped(self) -> int:
        """Calls lost so far: logged while the buffer was full or closed, refused by the backend, left over at close."""
        return self._queue.dropped

    def log(self, call: CreateAICallInput) -> None:
        """Take a call. Never raises, never waits."""
        try:
            logged = LoggedCall.of(call, instant("clock", self._clock.now()))
        except Exception as error:  # noqa: BLE001 - log_call never raises, whatever it is given
            self._queue.drop(1, f"a call could not be read ({error!r})")
            return
        self._queue.put((logged,))

    def accept(self, calls: Sequence[LoggedCall]) -> None:
        """Take calls that were logged elsewhere, in order. Never raises, never waits."""
        self._queue.put(calls)

    async def flush(self) -> None:
        """Wait until everything taken so far is durable or counted as dropped.

        BackendError when the backend stays out for `flush_timeout`, SchemaError when its schema is missing,
        ConfigurationError when it lets nobody in; the calls stay in the buffer.
        """
        self._lifecycle.check()
        await checkpoint()
        target = self._queue.taken
        if self._queue.settled >= target:
            return
        if self._one_writer is not None and inside_transaction_of(self._one_writer):
            raise UsageError("logged AI calls wait for the transaction that is open here; read through its own logger")
        self._urgent.set()
        with anyio.move_on_after(self._flush_timeout):
            while self._queue.settled < target:
                await self._progress.wait()
                if not isinstance(self._fault, BackendError | None):
                    break  # it does not pass by waiting
        if self._queue.settled >= target:
            return
        if isinstance(self._fault, SchemaError):
            raise SchemaError(self._fault.missing, self._fault.mend) from self._fault
        kind = BackendBusyError if self._fault is None else type(self._fault)
        raise kind("the logged AI calls could not be written in time; they stay in the buffer") from self._fault

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Self]:
        """Write in the background until the end of the block, then write what is left."""
        self._wake = anyio.Event()
        self._urgent = anyio.Event()
        self._progress = anyio.Event()
        self._ended = anyio.Event()
        self._scope = anyio.CancelScope(shield=True)
        self._lifecycle.open()
        failure: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._write_until_closed)
            try:
                yield self
            except BaseException as error:  # noqa: BLE001 - raised below, outside the group, which would wrap it
                failure = error
            finally:
                await self._close()
        if failure is not None:
            raise failure

    async def _write_until_closed(self, *, task_status: TaskStatus[None]) -> None:
        leave_transactions()
        try:
            with self._scope:
                task_status.started()
                while not self._queue.at_end:
                    try:
                        await self._work()
                    except anyio.get_cancelled_exc_class():
                        # asyncio.run, at its end, cancels every task, which reaches through a shield. What was taken is
                        # still to be written, and _close comes when the owner's block ends, which is cancelled as well.
                        if self._scope.cancel_called:
                            raise
                        # Unless the owner forgot about the block: asyncio.run must not wait for this task for ever.
                        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + _FORGOTTEN_AFTER)
        finally:
            self._ended.set()

    async def _work(self) -> None:
        self._wake = anyio.Event()
        if self._queue.fall_asleep():
            await self._wake.wait()
        batch = self._queue.oldest(BATCH_SIZE)
        refused = await self._write_through_outage([logged.row for logged in batch])
        self._queue.settle(len(batch))
        if refused:
            self._queue.drop(len(refused), f"the backend refused them ({refused[0].error!r})")
        self._queue.report()
        self._tell_progress()

    async def _write_through_outage(self, batch: Sequence[AICallRecord]) -> list[Refusal]:
        pause = _FIRST_PAUSE
        while True:
            try:
                refused = await write_apart(self._write, batch)
            except WorkflowAdapterError as error:
                if self._fault is None:
                    _logger.warning("AI calls can not be written and wait in the buffer: %s", error)
                self._fault = error
            else:
                self._fault = None
                return refused
            self._queue.report()
            self._urgent = anyio.Event()
            self._tell_progress()
            with anyio.move_on_after(pause):
                await self._urgent.wait()
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _tell_progress(self) -> None:
        told, self._progress = self._progress, anyio.Event()
        told.set()

    def _rouse(self) -> None:
        loop = self._lifecycle.loop
        if loop is not None:
            loop.call_soon(self._wake_writer)

    def _wake_writer(self) -> None:
        # Runs in the loop, later than _rouse: the writer may have made a new event since.
        self._wake.set()

    async def _close(self) -> None:
        self._queue.close()
        self._urgent.set()
        self._scope.deadline = anyio.current_time() + self._close_timeout
        try:
            await wait_through_cancel(self._ended)
        finally:
            self._lifecycle.close()
            left = self._queue.waiting
            self._queue.settle(left)
            if left:
                self._queue.drop(left, f"they could not be written before the logger closed ({self._fault!r})")
            self._queue.report()
            self._tell_progress()
