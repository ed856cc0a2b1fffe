"""Where the calls of a bundle run: on the store, each in a transaction of its own, or inside one transaction.

The body of a call has no suspension, so that no cancel can cut it in two: the only ones are a checkpoint before it, and
the wait for its turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from anyio.lowlevel import checkpoint

from workflow_adapters.clock import Clock
from workflow_adapters.lifecycle import Lifecycle
from workflow_adapters.memory.store import MemoryStore
from workflow_adapters.memory.tables import Tables
from workflow_adapters.transaction_scope import TransactionScope
from workflow_adapters.validation import instant


@dataclass(slots=True)
class OutboxRotation:
    """The run whose event was handed out last: the next selection starts after it."""

    last_run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What all sessions of one bundle share."""

    store: MemoryStore
    clock: Clock
    busy_timeout: timedelta
    lifecycle: Lifecycle = field(default_factory=lambda: Lifecycle("this bundle"))
    rotation: OutboxRotation = field(default_factory=OutboxRotation)


class Session(Protocol):
    """What the adapters need."""

    @property
    def home(self) -> Home: ...

    def now(self) -> datetime:
        """The Clock's instant, in UTC, truncated."""
        ...

    def read(self) -> AbstractAsyncContextManager[Tables]:
        """The state that a reader here sees."""
        ...

    def write(self) -> AbstractAsyncContextManager[Tables]:
        """The state to change; the whole block counts, or nothing when it raises."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Session]:
        """A transaction, or a savepoint of this one."""
        ...


class _Session:
    def __init__(self, home: Home) -> None:
        self.home = home

    def now(self) -> datetime:
        return instant("clock", self.home.clock.now())


class StoreSession(_Session):
    """Each call is a transaction of its own."""

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[Tables]:
        self.home.lifecycle.check()
        await checkpoint()
        yield self.home.store.committed

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[Tables]:
        self.home.lifecycle.check()
        await checkpoint()
        async with self.home.store.writing(self.home.busy_timeout) as tables:
            yield tables

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Session]:
        self.home.lifecycle.check()
        await checkpoint()
        store = self.home.store
        async with store.writing(self.home.busy_timeout), TransactionScope(store).entered() as scope:
            yield TransactionSession(self.home, scope)


class TransactionSession(_Session):
    """All calls belong to one transaction or savepoint."""

    def __init__(self, home: Home, scope: TransactionScope) -> None:
        super().__init__(home)
        self._scope = scope

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[Tables]:
        self.home.lifecycle.check()
        await checkpoint()
        async with self._scope.call():
            yield self.home.store.working

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[Tables]:
        self.home.lifecycle.check()
        await checkpoint()
        async with self._scope.call():
            with self.home.store.atomic() as tables:
                yield tables

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Session]:
        self.home.lifecycle.check()
        await checkpoint()
        savepoint: int | None = None
        try:
            async with self._scope.inner() as inner:
                savepoint = self.home.store.savepoint()
                yield TransactionSession(self.home, inner)
        except BaseException:
            # When the transaction around it has been left meanwhile, the journal is another's by now.
            if savepoint is not None and not self._scope.ended:
                self.home.store.roll_back_to(savepoint)
            raise
