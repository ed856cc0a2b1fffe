"""Opening connections of our own. The DSN is kept where no repr, message or log shows it."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

import asyncpg

from workflow_adapters.errors import BackendUnavailableError, ConfigurationError
from workflow_adapters.postgres.connection import Connection, to_the_end
from workflow_adapters.postgres.dsn import check_dsn
from workflow_adapters.postgres.errors import connecting_failed
from workflow_adapters.postgres.options import PostgresSettings
from workflow_adapters.postgres.own_connection import OwnConnection

# Statements are few, but a patch makes one for every set of fields that is ever written together.
_CACHED_STATEMENTS: Final = 512
_HANDSHAKE_SECONDS: Final = 1.0
_OURS_TO_SAY: Final = frozenset({"dsn", "loop"})
# libpq's `options`: -c name=value, --name=value
_IN_OPTIONS: Final = re.compile(r"(?:-c\s*|--)([\w.-]+)\s*=")


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a connection is for: the end of its application name, and whether the time limits hold for it."""

    name: str = ""
    limited: bool = True


CALLS: Final = Purpose()
LISTENING: Final = Purpose("listen", limited=False)
MIGRATING: Final = Purpose("migrate", limited=False)


class Connector:
    """Opens connections to one database, with the settings that a purpose needs."""

    def __init__(self, dsn: str, settings: PostgresSettings) -> None:
        check_dsn(dsn)
        known = inspect.signature(asyncpg.connect).parameters.keys() - _OURS_TO_SAY
        for name in settings.connect.keys() - known:
            raise ConfigurationError(f"connect: {name!r} is no argument of asyncpg.connect that can be given here")
        self._dsn = dsn
        self._settings = settings
        query = parse_qs(urlsplit(dsn).query)
        self._has_password = ":" in dsn.partition("://")[2].rpartition("@")[0] or "password" in dsn
        given = cast("dict[str, str]", settings.connect.get("server_settings") or {})
        self._own_server_settings = {**given}
        self._given = {*query, *given}
        for options in (*query.get("options", []), given.get("options", "")):
            self._given |= {name.replace("-", "_") for name in _IN_OPTIONS.findall(options)}
        self._target = _target_session_attrs(dsn, query)

    async def __call__(self, purpose: Purpose = CALLS) -> Connection:
        """A new connection. BackendUnavailableError where none can be had, ConfigurationError where none ever will."""
        settings = self._settings
        options: dict[str, Any] = {
            "timeout": settings.connect_timeout.total_seconds(),
            "statement_cache_size": 0 if settings.pgbouncer else _CACHED_STATEMENTS,
            "max_cacheable_statement_size": 0,
            "connection_class": OwnConnection,
            **self._target,
            **settings.connect,
            "server_settings": self._server_settings(purpose),
        }
        if callable(options.get("password")):
            options["password"] = _telling(options["password"])
        try:
            return await _uninterrupted(asyncpg.connect(self._dsn, **options))
        except _NoPasswordError as error:
            said = f"the function that gives the password raised {type(error.__cause__).__name__}"
            raise BackendUnavailableError(f"no connection can be opened: {said}") from error.__cause__
        except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError) as error:
            raise connecting_failed(error) from error
        except (ValueError, TypeError, OverflowError, IndexError, asyncpg.InterfaceError) as error:
            said = type(error).__name__ if self._has_password else str(error)
            # Not even as the cause: its message may hold a piece of the DSN.
            raise ConfigurationError(f"asyncpg can not use the DSN or the connect options: {said}") from None

    def _server_settings(self, purpose: Purpose) -> dict[str, str]:
        settings = self._settings
        name = f"{settings.application_name} {purpose.name}".rstrip()
        wanted = {"application_name": name}
        if not settings.pgbouncer:
            # Sums of costs are those of the shortest texts of floats; a role may have been given fewer digits.
            wanted["extra_float_digits"] = "1"
            wanted["default_transaction_isolation"] = "read committed"
            wanted["statement_timeout"] = _ms(settings.statement_timeout.total_seconds() if purpose.limited else 0)
            wanted["idle_in_transaction_session_timeout"] = _ms(settings.idle_in_transaction_timeout.total_seconds())
        # What the DSN or the options say themselves holds; a connection with another purpose still says its own name.
        unsaid = {key: value for key, value in wanted.items() if key not in self._given}
        return {**self._own_server_settings, **unsaid}


class _NoPasswordError(Exception):
    """A caller's function failed, with whatever is the cause."""


def _telling(password: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """The same function; what it raises is told from asyncpg's own errors."""

    async def call() -> Any:
        try:
            given = password()
            return await given if inspect.isawaitable(given) else given
        except Exception as error:
            raise _NoPasswordError from error

    return call


async def _uninterrupted(connecting: Coroutine[Any, Any, Connection]) -> Connection:
    """Connect; a cancel lets a handshake that is under way come to its end, or ends the attempt a second later.

    Where asyncpg is cancelled in the middle of a handshake, it leaves a future whose exception nobody retrieves.
    """
    opening = asyncio.ensure_future(connecting)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await to_the_end(_give_up(opening))
        raise


async def _give_up(opening: asyncio.Task[Connection]) -> None:
    await asyncio.wait([opening], timeout=_HANDSHAKE_SECONDS)
    opening.cancel()
    await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        opening.result().terminate()


def _target_session_attrs(dsn: str, query: dict[str, list[str]]) -> dict[str, str]:
    """Of several hosts, only one that takes writes is of use, unless the DSN or the environment says otherwise."""
    said = "target_session_attrs" in query or "PGTARGETSESSIONATTRS" in os.environ
    hosts = [urlsplit(dsn).netloc.rpartition("@")[2], *query.get("host", [])]
    return {} if said or not any("," in host for host in hosts) else {"target_session_attrs": "read-write"}


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
