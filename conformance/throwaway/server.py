"""The server that a caller holds."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Generator, Iterable

from conformance.throwaway.databases import Databases
from conformance.throwaway.errors import Refusal
from conformance.throwaway.instance import Instance
from conformance.throwaway.to_the_end import in_threads, to_the_end


class ThrowawayServer:
    """A Postgres server that is gone with everything in it when the run is over.

    `dsn` is a clean database that nobody else was given; `rung` says where the server comes from, such as
    ``embedded-16``; `version` is the server's, such as ``16.4``; `reasons` says why each earlier rung gave none.

    The methods block for a bounded time, and any thread may call them; `AsyncThrowawayServer` is for event loops.
    Each raises ThrowawayError where the server does not do it.
    """

    def __init__(
        self, dsn: str, rung: str, version: str, reasons: tuple[Refusal, ...], instance: Instance, databases: Databases
    ) -> None:
        self.dsn = dsn
        self.rung = rung
        self.version = version
        self.reasons = reasons
        self._instance = instance
        self._databases = databases

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.rung}, PostgreSQL {self.version}>"

    def create_database(self, template: str | None = None) -> str:
        """Makes a database and returns its DSN.

        Args:
            template: the DSN of a throwaway database of this server to copy, with all that is in it; nobody may be
                connected to it meanwhile. None makes an empty one.
        """
        return self._databases.create(template)

    def drop_database(self, dsn: str) -> None:
        """Ends the sessions on a throwaway database of this server and drops it. It may be gone already.

        Raises:
            ForeignDatabaseError: not one that this server made.
        """
        self._databases.drop(dsn)

    @contextlib.contextmanager
    def database(self, template: str | None = None) -> Generator[str]:
        """The DSN of a database that is dropped on leaving."""
        dsn = self.create_database(template)
        try:
            yield dsn
        finally:
            self.drop_database(dsn)

    def reset(self, dsn: str | None = None, *, keep: Iterable[str] = ()) -> None:
        """Does what `reset_database` does to `dsn`, or to the server's own `dsn`, over a new connection."""
        self._databases.reset(self.dsn if dsn is None else dsn, keep)

    def stop(self) -> None:
        """Ends every session and shuts the server down in good order. Raises where the server was given."""
        self._instance.stop()
        self._databases.disconnect()

    def kill(self) -> None:
        """Kills every process of the server at once, as a crash would. Raises where the server was given."""
        self._instance.kill()
        self._databases.disconnect()

    def restart(self) -> None:
        """Stops the server if it runs, starts it at the same address, and waits until it answers.

        What was committed is there again, after `kill` too. Raises where the server was given.
        """
        self.stop()
        self._instance.start()


class AsyncThrowawayServer:
    """A ThrowawayServer for callers in an event loop, asyncio's or trio's: the same, awaited.

    A call that is cancelled runs to its end before the cancellation goes on.
    """

    def __init__(self, blocking: ThrowawayServer) -> None:
        self.blocking = blocking
        self.dsn = blocking.dsn
        self.rung = blocking.rung
        self.version = blocking.version
        self.reasons = blocking.reasons

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.rung}, PostgreSQL {self.version}>"

    async def create_database(self, template: str | None = None) -> str:
        return await to_the_end(lambda: self.blocking.create_database(template))

    async def drop_database(self, dsn: str) -> None:
        await to_the_end(lambda: self.blocking.drop_database(dsn))

    @contextlib.asynccontextmanager
    async def database(self, template: str | None = None) -> AsyncGenerator[str]:
        async with in_threads(self.blocking.database(template)) as dsn:
            yield dsn

    async def reset(self, dsn: str | None = None, *, keep: Iterable[str] = ()) -> None:
        await to_the_end(lambda: self.blocking.reset(dsn, keep=keep))

    async def stop(self) -> None:
        await to_the_end(self.blocking.stop)

    async def kill(self) -> None:
        await to_the_end(self.blocking.kill)

    async def restart(self) -> None:
        await to_the_end(self.blocking.restart)
