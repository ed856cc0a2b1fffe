"""A caller's own connection, inside the caller's open transaction."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast

import asyncpg

from workflow_adapters.errors import BackendUnavailableError, ConfigurationError, UsageError
from workflow_adapters.postgres.connection import Connection
from workflow_adapters.postgres.database import TransactionDatabase
from workflow_adapters.postgres.engine import Engine
from workflow_adapters.postgres.job_channel import JobSignals, ListeningConnection
from workflow_adapters.postgres.session import Session
from workflow_adapters.transaction_scope import TransactionScope

_NONE_OPEN: Final = (
    "no transaction is open on the caller's connection: begin one before bind(), as with"
    " `async with connection.transaction()`, and leave the block of bind() before it ends"
)


class BoundSession(Session):
    """What the caller has under way. It is never begun, committed, rolled back or closed here."""

    def __init__(self, engine: Engine, connection: Connection) -> None:
        super().__init__(engine, connection, limit=None)
        self.is_lost = False

    def require_transaction(self) -> None:
        """UsageError unless the caller's transaction is open."""
        if self.is_lost:
            raise BackendUnavailableError("the caller's connection was lost, and its transaction with it")
        try:
            is_open = not self._connection.is_closed() and self._connection.is_in_transaction()
        except asyncpg.InterfaceError as error:
            raise UsageError(f"the caller's connection can not be used any more: {error}") from error
        if not is_open:
            raise UsageError(_NONE_OPEN)

    async def refuse_if_spoilt(self) -> None:
        """Raise where an error of our statements was swallowed and the caller's COMMIT would store nothing.

        Of a lost connection the COMMIT will tell by itself.
        """
        if self.failure is not None and not self.is_lost:
            async with self.turn():
                await self.refuse_if_aborted()


@asynccontextmanager
async def open_transaction_on(
    engine: Engine, signals: JobSignals, connection: object, owner: object
) -> AsyncGenerator[TransactionDatabase]:
    """The database inside the transaction that is open on a caller's connection."""
    engine.check()
    # A pool's proxy counts as a connection.
    if not isinstance(connection, asyncpg.Connection):
        raise ConfigurationError(
            f"bind() takes an asyncpg connection, not {type(connection).__name__}; there is bind_sqlalchemy() too"
        )
    driver = cast("ListeningConnection", connection)
    session = BoundSession(engine, driver)
    session.require_transaction()

    def on_end(_connection: object) -> None:
        session.is_lost = True

    driver.add_termination_listener(on_end)
    scope = TransactionScope(owner)
    try:
        async with scope.entered():
            yield TransactionDatabase(engine, signals, session, scope)
        await session.refuse_if_spoilt()
    finally:
        if not session.is_lost:
            _forget(driver, on_end)
    if session.jobs_changed:
        signals.jobs_change_soon()


def _forget(connection: ListeningConnection, callback: object) -> None:
    try:
        connection.remove_termination_listener(callback)
    except asyncpg.InterfaceError:
        # The pool has it back already, and forgets its listeners by itself when it closes.
        return
