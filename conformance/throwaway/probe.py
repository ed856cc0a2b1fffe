"""Connections for administration, and the wait for a server to answer its first query."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.throwaway.background_loop import BackgroundLoop
from conformance.throwaway.dsn import without_password
from conformance.throwaway.errors import ThrowawayError, UnavailableError

if TYPE_CHECKING:
    import asyncpg

_POLL_SECONDS = 0.05
_CONNECT_SECONDS = 10.0
_COMMAND_SECONDS = 60.0


def require_driver() -> None:
    """Raises ThrowawayError where asyncpg is not installed."""
    if importlib.util.find_spec("asyncpg") is None:
        raise ThrowawayError("asyncpg is not installed: pip install 'workflow-adapters[postgres]'")


async def connect(dsn: str, application: str = "conformance", **options: Any) -> asyncpg.Connection[asyncpg.Record]:
    """Opens a connection whose commands are bounded in time.

    Raises:
        UnavailableError: nobody answers there, or refuses us. The message holds no password.
    """
    import asyncpg

    try:
        return await asyncpg.connect(
            dsn,
            timeout=_CONNECT_SECONDS,
            command_timeout=_COMMAND_SECONDS,
            server_settings={"application_name": application},
            **options,
        )
    except ValueError:
        # The driver's complaint quotes what it took for a host or port, which may be half a password.
        raise UnavailableError("the URL can not be read: percent-encode what is special in its parts") from None
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise UnavailableError(describe(error, dsn)) from None


def describe(error: BaseException, dsn: str) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return without_password(first_line, dsn)


def wait_until_ready(dsn: str, complain_if_gone: Callable[[], None], seconds: float) -> None:
    """Asks a real question over the network until it is answered, for at most `seconds`.

    Args:
        dsn: a server that is starting.
        complain_if_gone: raises where it has ended; called before each try.
        seconds: the bound.

    Raises:
        UnavailableError: no answer in time; the message has the last refusal.
    """
    loop = BackgroundLoop()
    deadline = time.monotonic() + seconds
    try:
        while True:
            complain_if_gone()
            try:
                return loop.run(_ask(dsn), _CONNECT_SECONDS)
            except ThrowawayError as error:
                if time.monotonic() > deadline:
                    raise UnavailableError(f"the server does not answer within {seconds:.0f} s: {error}") from None
            time.sleep(_POLL_SECONDS)
    finally:
        loop.close()


async def _ask(dsn: str) -> None:
    connection = await connect(dsn, ssl=False)
    try:
        await connection.fetchval("SELECT 1")
    finally:
        await asyncio.wait_for(connection.close(), _CONNECT_SECONDS)
