"""Who may call on a transaction, and when: the rules of nesting, shared by every backend.

A scope is one open transaction or savepoint. Calls on it are serialised. While an inner block is open, a call from a
task outside the block waits for its end; one from inside it could only wait for itself and is a UsageError. A context
variable tells the two apart, so tasks started inside the block count as inside.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import anyio

from workflow_adapters.errors import UsageError

_entered: ContextVar[tuple[TransactionScope, ...]] = ContextVar("workflow_adapters_transactions", default=())


class TransactionScope:
    """One open transaction (`owner` is the bundle it came from) or savepoint (of `parent`)."""

    def __init__(self, owner: object, parent: TransactionScope | None = None) -> None:
        self._owner = owner
        self._parent = parent
        self._turn = anyio.Lock()
        self._inner: TransactionScope | None = None
        self._ended = False

    @asynccontextmanager
    async def call(self) -> AsyncGenerator[None]:
        """Hold the scope's turn for one call on its `tx`."""
        self._refuse_if_unusable()
        async with self._turn:
            self._refuse_if_unusable()
            yield

    @asynccontextmanager
    async def inner(self) -> AsyncGenerator[TransactionScope]:
        """Hold the scope's turn for a whole inner block and yield the scope of its savepoint."""
        async with self.call():
            child = TransactionScope(self._owner, self)
            self._inner = child
            try:
                async with child.entered():
                    yield child
            finally:
                self._inner = None

    @asynccontextmanager
    async def entered(self) -> AsyncGenerator[TransactionScope]:
        """Mark the running task, and those it starts, as inside this scope; afterwards the scope is at its end."""
        token = _entered.set((*_entered.get(), self))
        try:
            yield self
        finally:
            self._ended = True
            _entered.reset(token)

    def open_on(self, owner: object) -> bool:
        """Whether this is an open transaction of that bundle."""
        return self._owner is owner and not self._ended

    def _refuse_if_unusable(self) -> None:
        if self._ended:
            raise UsageError("this transaction has ended; use the adapter it came from, or open a new one")
        if self._inner is not None and self._inner in _entered.get():
            raise UsageError("an inner block of this transaction is open here; call its tx, or leave the block first")


def inside_transaction_of(owner: object) -> bool:
    """Whether the running task is inside an open transaction of this bundle."""
    return any(scope.open_on(owner) for scope in _entered.get())
