"""Bringing the schema to the current version, from however many processes at once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from workflow_adapters.errors import BackendBusyError, ConfigurationError, WorkflowAdapterError
from workflow_adapters.postgres.check import check_schema, read_indexes
from workflow_adapters.postgres.connection import Connection, discard, is_lost, to_the_end
from workflow_adapters.postgres.detect import Catalogue, read_catalogue, refuse_encoding, refuse_newer
from workflow_adapters.postgres.errors import InFlight, translated
from workflow_adapters.postgres.migration_plan import Planner, Step
from workflow_adapters.postgres.options import PostgresSettings
from workflow_adapters.postgres.own_transaction import BEGIN

_POLL_SECONDS: Final = 0.1
_LEAVING_SECONDS: Final = 5.0
# How long a change of a table may queue for its lock, and everybody else behind it, before it tries again.
_LOCK_MS: Final = 2000

POOLED: Final = (
    "migrate() needs a direct connection to Postgres and this one goes through a pooler such as PgBouncer: it holds a"
    " lock of its session and builds indexes concurrently; open a bundle for it with the address of the server itself"
)


class Migrator:
    """Plans or makes what a schema lacks, over one connection that is outside of any transaction."""

    def __init__(self, connection: Connection, settings: PostgresSettings, render: Callable[[str], str]) -> None:
        self._connection = connection
        self._settings = settings
        self._planner = Planner(settings.schema, render)
        self._seconds = settings.migrate_timeout.total_seconds()

    async def plan(self) -> list[str]:
        """The SQL that `run` would run: none where the schema is current, or not ours to change."""
        async with translating(self._connection):
            return _sql(await self._steps())

    async def run(self) -> list[str]:
        """Do it, and return the SQL that was run."""
        async with translating(self._connection):
            await self._refuse_pooler()
            if not await self._steps():
                return []
            async with self._alone():
                # What there is to do may have been done while we waited for our turn.
                steps = await self._steps()
                for step in steps:
                    await self._take(step)
                return _sql(steps)

    async def _steps(self) -> list[Step]:
        settings = self._settings
        catalogue = await read_catalogue(self._connection, settings.schema, settings.status_enum, self._seconds)
        refuse_encoding(catalogue)
        refuse_newer(catalogue.version)
        if _is_theirs(catalogue):
            await check_schema(self._connection, settings.schema, settings.status_enum, self._seconds)
            return []
        indexes = await read_indexes(self._connection, settings.schema, self._seconds)
        there = await self._connection.fetch(
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1::text::name",
            settings.schema,
            timeout=self._seconds,
        )
        return self._planner.steps(catalogue, indexes, schema_exists=bool(there))

    async def _take(self, step: Step) -> None:
        if not step.in_transaction:
            for sql in step.statements:
                await self._execute(sql)
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        while True:
            try:
                await self._take_in_transaction(step)
            except asyncpg.LockNotAvailableError:
                if loop.time() > deadline:
                    raise
            else:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _take_in_transaction(self, step: Step) -> None:
        await self._execute(BEGIN)
        try:
            await self._execute(f"SET LOCAL lock_timeout = {_LOCK_MS}")
            for sql in step.statements:
                await self._execute(sql)
            await self._execute("COMMIT")
        except BaseException:
            await to_the_end(self._leave("ROLLBACK"))
            raise

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Hold the lock of migrators of this schema.

        Asked for again and again: who blocks in pg_advisory_lock holds a snapshot, for the end of which CREATE INDEX
        CONCURRENTLY of the one that has the lock would wait.
        """
        key = lock_key(self._settings.schema)
        deadline = asyncio.get_running_loop().time() + self._seconds
        while not await self._try_lock(key):
            if asyncio.get_running_loop().time() > deadline:
                raise BackendBusyError(f"another process was still migrating after {self._seconds:g} s; try again")
            await asyncio.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            await to_the_end(self._leave(f"SELECT pg_advisory_unlock({key})"))

    async def _try_lock(self, key: int) -> bool:
        sql = "SELECT pg_try_advisory_lock($1::bigint)"
        return bool((await self._connection.fetch(sql, key, timeout=self._seconds))[0][0])

    async def _execute(self, sql: str) -> None:
        await self._connection.execute(sql, timeout=self._seconds)

    async def _leave(self, sql: str) -> None:
        """End something; without its connection the server ends it by itself. Never raises."""
        try:
            await self._connection.execute(sql, timeout=_LEAVING_SECONDS)
        except Exception:  # noqa: BLE001 - the error that brought us here goes first
            discard(self._connection)

    async def _refuse_pooler(self) -> None:
        """A pooler makes up the process id that it gives to a client."""
        rows = await self._connection.fetch("SELECT pg_backend_pid()", timeout=self._seconds)
        if rows[0][0] != self._connection.get_server_pid():
            raise ConfigurationError(POOLED)


@asynccontextmanager
async def translating(connection: Connection) -> AsyncGenerator[None]:
    """Errors of ours for the driver's."""
    try:
        yield
    except WorkflowAdapterError:
        raise
    except Exception as error:
        raise translated(error, is_lost(connection), InFlight()) from error


def _is_theirs(catalogue: Catalogue) -> bool:
    """Whether somebody else's tooling made the schema: there is something of it, and no note of ours."""
    return catalogue.version is None and bool(catalogue.tables or catalogue.labels)


def lock_key(schema: str) -> int:
    digest = hashlib.sha256(f"workflow_adapters {schema}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _sql(steps: list[Step]) -> list[str]:
    return [sql.strip() for step in steps for sql in step.statements]
