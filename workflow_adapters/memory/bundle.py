"""The bundle: the four ports and the operations over one store."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

from workflow_adapters.ai_call_buffer import AICallBuffer
from workflow_adapters.ai_call_transaction import TransactionAICalls
from workflow_adapters.built_in import BuiltInAdapters, BuiltInTransaction
from workflow_adapters.clock import Clock, checked_clock
from workflow_adapters.errors import ConfigurationError
from workflow_adapters.inputs.job_queue import JobQueueFairness, RetryBackoff
from workflow_adapters.memory.ai_call_logger import MemoryAICallLogger, write_calls
from workflow_adapters.memory.job_queue import MemoryJobQueue
from workflow_adapters.memory.operations import MemoryOperations
from workflow_adapters.memory.persistence import MemoryPersistence
from workflow_adapters.memory.session import Home, Session, StoreSession
from workflow_adapters.memory.step_ledger import MemoryStepLedger
from workflow_adapters.memory.store import MemoryStore
from workflow_adapters.queue_settings import QueueSettings
from workflow_adapters.worker_id import WorkerId

DEFAULT_BUSY_TIMEOUT: Final = timedelta(seconds=5)


class _MemoryPorts:
    """The ports over one session, whose logged calls go to `calls`."""

    def __init__(self, session: Session, queue: QueueSettings, calls: AICallBuffer | TransactionAICalls) -> None:
        self._session = session
        self._queue = queue
        self._calls = calls
        self.persistence = MemoryPersistence(session)
        self.job_queue = MemoryJobQueue(session, queue)
        self.step_ledger = MemoryStepLedger(session)
        self.ai_call_logger = MemoryAICallLogger(session, calls)
        self.operations = MemoryOperations(session)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[BuiltInTransaction]:
        calls = TransactionAICalls(self._session.home.clock, self._calls)
        async with calls.block(), self._session.transaction() as session:
            calls.opened(partial(write_calls, session))
            yield MemoryTransaction(session, self._queue, calls)
            await calls.flush()


class MemoryTransaction(_MemoryPorts):
    """The bundle of a transaction or savepoint."""

    @property
    def connection(self) -> None:
        return None


class MemoryAdapters(_MemoryPorts):
    """An open bundle."""

    def bind(self, connection: object) -> AbstractAsyncContextManager[BuiltInTransaction]:
        raise ConfigurationError("a bundle in memory has no connection to bind; use transaction()")

    def bind_sqlalchemy(self, session_or_connection: object) -> AbstractAsyncContextManager[BuiltInTransaction]:
        return self.bind(session_or_connection)

    async def migrate(self, *, plan: bool = False) -> list[str]:
        async with self._session.read():
            return []

    async def check_schema(self) -> None:
        async with self._session.read():
            """There is no schema that could lack anything."""


@asynccontextmanager
async def open_memory(
    *,
    store: MemoryStore | None = None,
    clock: Clock | None = None,
    worker_id: str | None = None,
    fairness: JobQueueFairness | None = None,
    backoff: RetryBackoff | None = None,
    busy_timeout: timedelta = DEFAULT_BUSY_TIMEOUT,
) -> AsyncGenerator[BuiltInAdapters]:
    """Open a bundle in memory, on a store of its own or on a shared one: two bundles on one store are two workers.

    `clock` makes every stamp. `worker_id` is what claims are stamped with; without it the host's, once adopted.
    `busy_timeout` is how long a write waits for another task's transaction before it is a BackendBusyError.
    """
    if not isinstance(busy_timeout, timedelta) or busy_timeout <= timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]  # settings come from anywhere
        raise ConfigurationError(f"busy_timeout: must be a timedelta greater than 0, not {busy_timeout!r}")
    if store is not None and not isinstance(store, MemoryStore):  # pyright: ignore[reportUnnecessaryIsInstance]  # settings come from anywhere
        raise ConfigurationError(f"store: must be a MemoryStore, not {store!r}")
    home = Home(store=store or MemoryStore(), clock=checked_clock(clock), busy_timeout=busy_timeout)
    session = StoreSession(home)
    buffer = AICallBuffer(partial(write_calls, session), home.clock, flush_timeout=busy_timeout, one_writer=home.store)
    queue = QueueSettings(worker_id=WorkerId(worker_id), fairness=fairness, backoff=backoff or RetryBackoff())
    with home.store.used_in(home.lifecycle.open()):
        try:
            async with buffer.running():
                yield MemoryAdapters(session, queue, buffer)
        finally:
            home.lifecycle.close()
