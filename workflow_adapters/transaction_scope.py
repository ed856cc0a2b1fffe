"""Who may call on a transaction, and when: the rules of nesting, shared by every backend.

A scope is one open transaction or savepoint. Calls on it are serialised. While an inner block is open, a call from a
task outside the block waits for its end; one from inside it could only wait for itself and is a UsageError. A context
variable tells the two apart, so tasks started inside the block count as inside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import anyio

from workflow_adapters.errors import UsageError

_entered: ContextVar[tuple[TransactionScope, ...]] = ContextVar("workflow_adapters_transactions", default=())


class Turn:
    """A lock that goes to whoever has waited longest.

    It belongs to no task, so that a block may be left by another task than entered it, and is never lost to a cancel of
    either kind. A free turn is taken without a suspension.
    """

    __slots__ = ("_taken", "_waiting")

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[anyio.Event] = deque()

    async def take(self) -> None:
        if not self._taken:
            self._taken = True
            return
        given = anyio.Event()
        self._waiting.append(given)
        try:
            await given.wait()
        except BaseException:
            if given.is_set():
                self.give()
            else:
                self._waiting.remove(given)
            raise

    def give(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._taken = False


class TransactionScope:
    """One open transaction (`owner` is what a transaction is exclusive on: the store or bundle) or savepoint."""

    def __init__(self, owner: object, parent: TransactionScope | None = None) -> None:
        self._owner = owner
        self._parent = parent
        self._turn = Turn()
        self._inner: TransactionScope | None = None
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether this block, or one around it, has been left."""
        return self._ended or (self._parent is not None and self._parent.ended)

    @asynccontextmanager
    async def call(self) -> AsyncGenerator[None]:
        """Hold the scope's turn for one call on its `tx`."""
        self._refuse_if_unusable()
        await self._turn.take()
        try:
            self._refuse_if_unusable()
            yield
        finally:
            self._turn.give()

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
        """Mark the running task, and those it starts, as inside this scope; afterwards the scope is at its end.

        A block that ends well first waits for the calls, and the inner blocks, that other tasks have begun on it.
        """
        _entered.set((*_entered.get(), self))
        try:
            yield self
            await self._turn.take()
            self._turn.give()
        finally:
            self._ended = True
            _entered.set(tuple(scope for scope in _entered.get() if scope is not self))

    def open_on(self, owner: object) -> bool:
        """Whether this is an open transaction of that owner."""
        return self._owner is owner and not self.ended

    def _refuse_if_unusable(self) -> None:
        if self.ended:
            raise UsageError("this transaction has ended; use the adapter it came from, or open a new one")
        if self._inner is not None and self._inner in _entered.get():
            raise UsageError("an inner block of this transaction is open here; call its tx, or leave the block first")


def inside_transaction_of(owner: object) -> bool:
    """Whether the running task is inside an open transaction of this owner."""
    return any(scope.open_on(owner) for scope in _entered.get())


def leave_transactions() -> None:
    """Make the running task count as outside of every transaction: for a background task, whoever started it."""
    _entered.set(())
