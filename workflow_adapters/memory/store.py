"""What a bundle in memory stands on: two states of the tables, a journal, and one turn to write.

Writers change the working state, one after the other, and note in the journal what they replaced. A commit carries the
changed rows over to the committed state, which is all that readers outside a transaction see; a rollback puts the old
rows back.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

import anyio

from workflow_adapters.errors import BackendBusyError, UsageError
from workflow_adapters.lifecycle import EventLoop
from workflow_adapters.memory.table import Change
from workflow_adapters.memory.tables import Tables
from workflow_adapters.transaction_scope import Turn, inside_transaction_of


class MemoryStore:
    """The data of one or more bundles. All bundles open on it at one time belong to one event loop."""

    def __init__(self) -> None:
        self._journal: list[Change] = []
        self.committed = Tables()
        self.working = Tables(self._journal)
        self._turn = Turn()
        self._loop: EventLoop | None = None
        self._bundles = 0
        self._jobs_changed: anyio.Event | None = None

    @contextmanager
    def used_in(self, loop: EventLoop) -> Generator[None]:
        """Count a bundle that is open on the store. UsageError when another event loop has one open."""
        if self._bundles and self._loop != loop:
            raise UsageError("this store is in use by another event loop; open one store for each loop")
        if self._loop != loop:
            self._loop, self._jobs_changed = loop, None
        self._bundles += 1
        try:
            yield
        finally:
            self._bundles -= 1

    @asynccontextmanager
    async def writing(self, busy_timeout: timedelta) -> AsyncGenerator[Tables]:
        """Hold the writer's turn: commit at the end of the block, or roll everything back if it fails."""
        await self._take_turn(busy_timeout)
        try:
            yield self.working
            self._commit()
        finally:
            # Nothing is left in the journal by a commit.
            self.roll_back_to(0)
            self._turn.give()

    def savepoint(self) -> int:
        """Where the journal stands, for `roll_back_to`."""
        return len(self._journal)

    def roll_back_to(self, savepoint: int) -> None:
        """Undo the writes since then, the latest first."""
        while len(self._journal) > savepoint:
            change = self._journal.pop()
            change.table.restore(change.key, change.before)

    @contextmanager
    def atomic(self) -> Generator[Tables]:
        """One call inside an open transaction: all of it, or nothing when it raises."""
        savepoint = self.savepoint()
        try:
            yield self.working
        except BaseException:
            self.roll_back_to(savepoint)
            raise

    def jobs_changed(self) -> anyio.Event:
        """An event that the next commit sets that changes a job."""
        if self._jobs_changed is None:
            self._jobs_changed = anyio.Event()
        return self._jobs_changed

    async def _take_turn(self, busy_timeout: timedelta) -> None:
        if inside_transaction_of(self):
            raise UsageError(
                "this write would wait for the transaction that is open here; call the transaction's own tx instead"
            )
        with anyio.move_on_after(busy_timeout.total_seconds()):
            await self._turn.take()
            return
        raise BackendBusyError(f"another transaction has held the store for {busy_timeout.total_seconds():g} s")

    def _commit(self) -> None:
        changed = {(change.table.name, change.key) for change in self._journal}
        for name, key in changed:
            working, committed = getattr(self.working, name), getattr(self.committed, name)
            committed.restore(key, working.get(key))
        self._journal.clear()
        if self._jobs_changed is not None and any(name == self.working.jobs.name for name, _ in changed):
            self._jobs_changed.set()
            self._jobs_changed = None
