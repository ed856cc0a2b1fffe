"""Throwaway databases on one server: made, emptied, dropped, and found again after their run has died."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.throwaway import dsn as dsns
from conformance.throwaway.background_loop import BackgroundLoop
from conformance.throwaway.errors import ForeignDatabaseError, ThrowawayError, UnavailableError
from conformance.throwaway.marker import INSTALL, MARK, RESET, SCHEMA, CanExecute
from conformance.throwaway.probe import connect, describe

if TYPE_CHECKING:
    import asyncpg

    Connection = asyncpg.Connection[asyncpg.Record]

T = TypeVar("T")

# DROP DATABASE … WITH (FORCE) is of version 13, the choice of how a database is copied of 15.
_OLDEST_MAJOR = 13
_COPIES_FILES_SINCE = 15
_OPERATION_SECONDS = 90.0
_NAME = re.compile(r"throwaway_([0-9a-f]+)_[0-9a-z]+")


async def reset_database(connection: CanExecute, keep: Iterable[str] = ()) -> None:
    """Deletes every row of every table of a throwaway database, in one round trip and all or nothing.

    Args:
        connection: an asyncpg connection or pool on the database, outside of a transaction.
        keep: tables left alone, each as SQL names it (``schema.table``, quoted where it needs quotes).

    Sequences go on from where they are. Tables of extensions are left alone. Waits at most 10 s for another session's
    locks.

    Raises:
        ForeignDatabaseError: no throwaway database. Nothing was changed.
        ThrowawayError: a table in `keep` does not exist, or locks did not come free. Nothing was changed.
    """
    import asyncpg

    try:
        await connection.execute(RESET, list(keep))
    except asyncpg.LockNotAvailableError as error:
        raise ThrowawayError("reset: another session holds locks on the tables; end its transaction") from error
    except (asyncpg.InvalidSchemaNameError, asyncpg.ObjectNotInPrerequisiteStateError) as error:
        raise ForeignDatabaseError(f"reset: not a throwaway database, or not under its own name ({SCHEMA})") from error
    except asyncpg.UndefinedTableError as error:
        raise ThrowawayError(f"reset: keep names a table that is not there: {error}") from error


class Databases:
    """The throwaway databases that one run has on one server.

    Keeps one connection open. Its application name says that the run is alive to whoever looks for databases of dead
    runs on the same server, from whatever machine.
    """

    def __init__(self, server_dsn: str, server: str, *, copies_files: bool, **connect_options: Any) -> None:
        self._server_dsn = server_dsn
        self._server = server
        self._copies_files = copies_files
        self._connect_options = connect_options
        self._loop = BackgroundLoop()
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None

    def examine(self) -> str:
        """The server's version, as in ``16.4``.

        Raises:
            UnavailableError: too old, or forgets acknowledged commits when killed.
        """
        version, number, synchronous_commit = self._administer(_examine)
        if number < _OLDEST_MAJOR * 10_000:
            raise UnavailableError(f"PostgreSQL {version} is too old: {_OLDEST_MAJOR} at least")
        if synchronous_commit == "off":
            raise UnavailableError("synchronous_commit is off, so a killed server forgets commits: switch it on")
        self._copies_files = self._copies_files and number >= _COPIES_FILES_SINCE * 10_000
        return version

    def prepare(self) -> None:
        """Makes the database that the others are copied from."""
        base = self._administer(lambda admin: self._create(admin, "base", "template0"))
        self._on(base, self._mark)

    def create(self, template: str | None) -> str:
        source = f"throwaway_{self._server}_base" if template is None else self._own_name(template)
        return self._administer(lambda admin: self._create(admin, secrets.token_hex(5), source))

    def drop(self, dsn: str) -> None:
        name = self._own_name(dsn)
        self._administer(lambda admin: admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))

    def reset(self, dsn: str, keep: Iterable[str]) -> None:
        self._on(dsn, lambda connection: reset_database(connection, keep))

    def drop_all(self) -> None:
        """Drops every database of this run, whoever made it."""
        self._administer(self._drop_all)

    def drop_abandoned(self) -> None:
        """Drops the databases of runs of the same role that have no session left."""
        self._administer(_drop_abandoned)

    def disconnect(self) -> None:
        """To be called before the server goes down."""
        self._loop.run(self._disconnect(), _OPERATION_SECONDS)

    def close(self) -> None:
        try:
            self.disconnect()
        finally:
            self._loop.close()

    def _administer(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async def take_turn() -> T:
            async with self._turn:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await connect(
                        self._server_dsn, _application_of(self._server), **self._connect_options
                    )
                return await work(self._connection)

        return self._run(take_turn)

    def _on(self, dsn: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        async def visit() -> T:
            connection = await connect(dsn, **self._connect_options)
            try:
                return await work(connection)
            finally:
                await connection.close(timeout=10)

        return self._run(visit)

    def _run(self, work: Callable[[], Any]) -> Any:
        import asyncpg

        try:
            return self._loop.run(work(), _OPERATION_SECONDS)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise ThrowawayError(describe(error, self._server_dsn)) from error

    async def _create(self, admin: Connection, suffix: str, source: str) -> str:
        import asyncpg

        name = f"throwaway_{self._server}_{suffix}"
        strategy = " STRATEGY FILE_COPY" if self._copies_files else ""
        try:
            await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"{strategy}')
        except asyncpg.ObjectInUseError as error:
            raise ThrowawayError(f"create_database: close the sessions on the template {source} first") from error
        return dsns.with_database(self._server_dsn, name)

    async def _mark(self, connection: Connection) -> None:
        await connection.execute(INSTALL)
        await connection.execute(MARK, self._server)

    def _own_name(self, dsn: str) -> str:
        name = dsns.database_of(dsn)
        found = _NAME.fullmatch(name)
        if not found or found[1] != self._server:
            raise ForeignDatabaseError(f"database {name!r} is not one that this server made as a throwaway")
        return name

    async def _drop_all(self, admin: Connection) -> None:
        names = await admin.fetch(
            """
            SELECT datname
            FROM pg_database
            WHERE starts_with(datname, $1)
            """,
            f"throwaway_{self._server}_",
        )
        for row in names:
            await admin.execute(f'DROP DATABASE IF EXISTS "{row["datname"]}" WITH (FORCE)')

    async def _disconnect(self) -> None:
        async with self._turn:
            if self._connection is not None:
                self._connection.terminate()
                self._connection = None


def _application_of(server: str) -> str:
    return f"throwaway {server}"


async def _examine(admin: Connection) -> tuple[str, int, str]:
    row = await admin.fetchrow(
        """
        SELECT
            split_part(current_setting('server_version'), ' ', 1),
            current_setting('server_version_num')::integer,
            current_setting('synchronous_commit')
        """
    )
    assert row is not None
    return tuple(row)


async def _drop_abandoned(admin: Connection) -> None:
    import asyncpg

    rows = await admin.fetch(
        """
        SELECT d.datname
        FROM pg_database d
        WHERE d.datname ~ '^throwaway_[0-9a-f]+_[0-9a-z]+$'
          AND pg_get_userbyid(d.datdba) = current_user
          AND NOT EXISTS (
              SELECT FROM pg_stat_activity a
              WHERE a.application_name = 'throwaway ' || split_part(d.datname, '_', 2)
          )
        """
    )
    for row in rows:
        # Somebody may still look at it, or another run drop it at the same moment.
        with contextlib.suppress(asyncpg.ObjectInUseError, asyncpg.InvalidCatalogNameError):
            await admin.execute(f'DROP DATABASE IF EXISTS "{row["datname"]}"')
