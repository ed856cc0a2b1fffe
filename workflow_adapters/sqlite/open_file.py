"""Whether the file that is open is still the one at its path."""

from __future__ import annotations

import os

from workflow_adapters.errors import BackendUnavailableError


class OpenFile:
    """The file of a bundle, known by device and inode since its first connection.

    When it is removed or replaced, SQLite goes on writing where nobody will ever read, and says so to nobody; the next
    connection opens, or makes, another file beside it. So every unit of work looks first: it costs a microsecond.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None

    def recognise(self) -> None:
        """Take the file for ours if it is the first; otherwise it has to be the same."""
        if self._identity is None:
            self._identity = self._look()
        else:
            self.require()

    def require(self) -> None:
        """BackendUnavailableError unless our file, if we have opened one, is at its path."""
        if self._identity is not None and self._look() != self._identity:
            raise BackendUnavailableError(
                "the database file has been removed or replaced; nothing was written: put it back, or open a new bundle"
            )

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - on the way of every call, and a Path costs thrice as much
        except OSError:
            return None
        return found.st_dev, found.st_ino
