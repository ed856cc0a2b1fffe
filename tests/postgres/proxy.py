"""A TCP proxy that can drop, hold back and cut what goes through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias
from urllib.parse import urlsplit

from tests.postgres.support import at

Filter: TypeAlias = Callable[[bytes], bool]


class Proxy:
    """In front of one server. What a filter says False to, and all that comes after it, does not arrive."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        self._server = (parts.hostname or "localhost", parts.port or 5432)
        self._dsn = dsn
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.to_server: Filter = lambda data: True
        self.to_client: Filter = lambda data: True
        self.tells_of_the_end = True
        self.dsn = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.dsn = at(self._dsn, *server.sockets[0].getsockname())
        try:
            yield self
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*self._tasks)

    def cut(self) -> None:
        """End every connection, in both directions."""
        for writer in self._writers:
            writer.transport.abort()

    def swallow(self) -> None:
        """From now on nothing arrives anywhere, and nobody is told."""
        self.to_server = self.to_client = lambda data: False

    def heal(self) -> None:
        self.to_server = self.to_client = lambda data: True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ours, theirs = await asyncio.open_connection(*self._server)
        self._writers |= {writer, theirs}
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._carry(reader, theirs, "to_server"))
                tasks.create_task(self._carry(ours, writer, "to_client"))
        finally:
            writer.transport.abort()
            theirs.transport.abort()
            self._writers -= {writer, theirs}
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if getattr(self, direction)(data):
                    writer.write(data)
                    await writer.drain()
        if self.tells_of_the_end:
            writer.transport.abort()
