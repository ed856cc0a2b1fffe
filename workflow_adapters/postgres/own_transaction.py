"""A transaction that the adapters began themselves, and its end."""

from __future__ import annotations

import asyncio
from typing import Final

from workflow_adapters.postgres.connection import Connection, Transaction, discard, is_lost
from workflow_adapters.postgres.engine import Engine
from workflow_adapters.postgres.errors import InFlight, translated, was_never_sent
from workflow_adapters.postgres.own_connection import OwnConnection
from workflow_adapters.postgres.pool_port import Pool
from workflow_adapters.postgres.session import Session

BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Whatever level the role, the database or the server has by default: ours are right at this one."""

# A server that answers at all rolls back and forgets in less; without an answer the connection is done without.
_LEAVING_SECONDS: Final = 5.0


async def commit(connection: Connection, limit: float | None) -> None:
    """Commit what was begun with BEGIN; OutcomeUnknownError where the answer is lost."""
    try:
        await connection.execute("COMMIT", timeout=limit)
    except Exception as error:
        raise _commit_failed(error, connection) from error


class OwnTransaction:
    """Begun through asyncpg's own object, so that `connection.transaction()` of whoever gets the connection nests."""

    def __init__(self, connection: Connection, transaction: Transaction, session: Session, pool: Pool) -> None:
        self._connection = connection
        self._transaction = transaction
        self._pool = pool
        self.session = session

    @classmethod
    async def begin(cls, engine: Engine, connection: Connection, pool: Pool) -> OwnTransaction:
        await engine.know_schema(connection, pool.limit)
        try:
            # Of a connection that was lost meanwhile this tells already.
            transaction = connection.transaction(isolation="read_committed")
            async with asyncio.timeout(pool.limit):
                await transaction.start()
        except Exception as error:
            discard(connection)
            raise translated(error, is_lost(connection), InFlight()) from error
        except BaseException:
            # asyncpg believes in a transaction that may or may not be there.
            discard(connection)
            raise
        session = Session(engine, connection, limit=pool.limit, idle_limit=pool.idle_limit)
        return cls(connection, transaction, session, pool)

    async def commit(self) -> None:
        """Commit after the call that may still be running, and give the connection back."""
        is_committing = False
        try:
            async with self.session.turn():
                if self.session.failure is not None or self.session.handed_out:
                    await self.session.refuse_if_aborted()
                is_committing = True
                await self._commit()
        except BaseException:
            await (self._pool.recover(self._connection) if is_committing else self.rollback())
            raise
        try:
            await self._forget_callers_settings()
        finally:
            await self._pool.release(self._connection)

    async def rollback(self) -> None:
        """Roll back after the call that may still be running, and give the connection back. Never raises."""
        try:
            async with self.session.turn(), asyncio.timeout(_LEAVING_SECONDS):
                await self._transaction.rollback()
        except Exception:  # noqa: BLE001 - without its connection the server rolls back by itself
            discard(self._connection)
        try:
            await self._forget_callers_settings()
        finally:
            await self._pool.recover(self._connection)

    async def _forget_callers_settings(self) -> None:
        """Whoever had the connection may have left settings, locks or a LISTEN in its session. We leave nothing."""
        if not self.session.handed_out or is_lost(self._connection):
            return
        # asyncpg has isinstance say that a pool's proxy is a connection of any class.
        if type(self._connection) is OwnConnection and self._connection.is_altered:
            discard(self._connection)
            return
        try:
            await self._connection.reset(timeout=_LEAVING_SECONDS)
        except Exception:  # noqa: BLE001 - what can not be reset is not used again
            discard(self._connection)

    async def _commit(self) -> None:
        try:
            async with asyncio.timeout(self._pool.limit):
                await self._transaction.commit()
        except Exception as error:
            raise _commit_failed(error, self._connection) from error


def _commit_failed(error: Exception, connection: Connection) -> Exception:
    in_flight = InFlight(sent=not was_never_sent(error), in_doubt=True)
    return translated(error, is_lost(connection), in_flight)
