"""A server that somebody else runs and has given us the address of."""

from __future__ import annotations

import os
from typing import Any

from conformance.throwaway.dsn import check_given
from conformance.throwaway.errors import ThrowawayError, UnavailableError

VARIABLE = "CONFORMANCE_POSTGRES_DSN"


class GivenInstance:
    """The server at the address in the environment. Databases that exist stay untouched.

    The role needs CREATEDB, and the address must be the server's own: behind a pooler that lends connections for a
    transaction, the session that says that this run is alive is another's.
    """

    def __init__(self) -> None:
        """Raises UnavailableError where the environment has no usable address."""
        dsn = os.environ.get(VARIABLE)
        if not dsn:
            raise UnavailableError(f"{VARIABLE} is not set")
        self.dsn = check_given(dsn, VARIABLE)

    @property
    def has_cheap_checkpoints(self) -> bool:
        return False

    def start(self) -> None:
        raise ThrowawayError(f"the server of {VARIABLE} is not the harness's to start")

    def stop(self) -> None:
        raise ThrowawayError(f"the server of {VARIABLE} is not the harness's to stop")

    def kill(self) -> None:
        raise ThrowawayError(f"the server of {VARIABLE} is not the harness's to kill")

    def to_state(self) -> dict[str, Any]:
        # The address stays in the environment: it holds a password that is not ours to write to a disk.
        return {}
