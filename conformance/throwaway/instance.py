"""What every kind of server can do, whoever started it."""

from __future__ import annotations

from typing import Any, Protocol


class Instance(Protocol):
    """A Postgres server: this run's own, or one that was given.

    `start`, `stop` and `kill` block for a bounded time and raise ThrowawayError where the server does not obey, or is
    not ours to command. Address, accounts and data outlast all three.
    """

    @property
    def dsn(self) -> str:
        """A database to administer the server from. Nothing of the server's is ever changed in it."""
        ...

    @property
    def has_cheap_checkpoints(self) -> bool:
        """Whether a new database is made faster by copying its files, two checkpoints included."""
        ...

    def start(self) -> None:
        """Starts it after `stop` or `kill`, and returns once it answers queries."""
        ...

    def stop(self) -> None:
        """Ends every session and shuts down in good order. Does nothing to a server that is down."""
        ...

    def kill(self) -> None:
        """Kills all its processes at once, so that the next start has a crash to recover from."""
        ...

    def to_state(self) -> dict[str, Any]:
        """What another process of the run needs to command the same server."""
        ...
