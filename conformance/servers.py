"""The one throwaway Postgres of a process, for all adapters that ask for one."""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from conformance.instance import FixtureError

if TYPE_CHECKING:
    from conformance.throwaway import ThrowawayServer

_XDIST_RUN = "PYTEST_XDIST_TESTRUNUID"


class Shared:
    """What is known so far: a server, or that there is none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stack = ExitStack()
        self.server: ThrowawayServer | None = None
        self.refused: str | None = None
        self.name: str | None = os.environ.get(_XDIST_RUN)


_shared = Shared()


def postgres_server() -> ThrowawayServer:
    """The server, started on the first call; FixtureError with the reason of every rung where there is none."""
    from conformance.throwaway import ThrowawayError, blocking_postgres

    with _shared.lock:
        if _shared.refused is not None:
            raise FixtureError(_shared.refused)
        if _shared.server is None:
            try:
                context = blocking_postgres(shared_as=_shared.name)
                _shared.server = _shared.stack.enter_context(context)
            except ThrowawayError as error:
                _shared.refused = str(error)
                raise FixtureError(_shared.refused) from error
            atexit.register(stop_server)
        return _shared.server


def share_as(name: str) -> None:
    """From now on share the server with every process that has said the same; for processes about to be forked."""
    _shared.name = name


def stop_server() -> None:
    """End the server, if one was started; the next `postgres_server` starts another."""
    with _shared.lock:
        _shared.server = None
        _shared.stack.close()
    atexit.unregister(stop_server)
