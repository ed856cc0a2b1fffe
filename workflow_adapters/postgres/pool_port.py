"""What is asked of a pool, be it ours or a caller's."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from workflow_adapters.postgres.connection import Connection


class PoolStats(NamedTuple):
    """Connections that are in use (or being opened), idle, and calls that wait for one."""

    in_use: int
    idle: int
    waiting: int


class Pool(Protocol):
    """Where connections come from: our own pool, or one that a caller handed in."""

    @property
    def limit(self) -> float:
        """The client's time limit on a statement, in seconds. The server's, where it has one, is shorter."""
        ...

    @property
    def idle_limit(self) -> float | None:
        """The server's limit on the time between two statements of a transaction, where it is ours."""
        ...

    @property
    def call_limit(self) -> float | None:
        """The same for a call that has a connection to itself; None where the pool sees to it."""
        ...

    async def acquire(self) -> Connection:
        """A connection, until it is released or recovered.

        BackendBusyError where none is free in time, BackendUnavailableError where none can be opened.
        """
        ...

    def keep(self, connection: Connection) -> None:
        """Hold a connection for longer than a call: for a transaction."""
        ...

    async def release(self, connection: Connection) -> None:
        """Give back a connection at rest."""
        ...

    async def recover(self, connection: Connection) -> None:
        """Give back a connection after a call on it failed or was cancelled: bring it to rest, or do without it."""
        ...

    async def invalidate(self) -> None:
        """Open new connections from now on: what the old ones lead to has become useless."""
        ...

    async def close(self, timeout: float) -> None:
        """Wait for connections in use to come back, at most `timeout` seconds, then end them all."""
        ...

    @property
    def stats(self) -> PoolStats: ...
