"""A directory for one run that is gone afterwards; what a killed run has left is removed by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PREFIX: Final = "workflow-conformance-"
# Files that nobody wants back need no disk: an adapter that syncs each commit is tried in half the time.
_IN_MEMORY: Final = Path("/dev/shm")
_ON_DISK: Final = Path("/tmp")
_CHOSEN_BY: Final = ("TMPDIR", "TEMP", "TMP")
_ENOUGH: Final = 512 * 2**20


class Scratch:
    """Held by a lock that the kernel takes away however the process ends."""

    def __init__(self) -> None:
        base = base_directory()
        remove_abandoned()
        with _alone(base):
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_abandoned() -> None:
    """Remove the directories of processes that are no more."""
    for place in {base_directory(), Path(tempfile.gettempdir())}:
        with _alone(place):
            _remove_abandoned(place)


def base_directory() -> Path:
    """Where directories are made: in memory where there is room, unless the environment names a place."""
    usual = Path(tempfile.gettempdir())
    if usual != _ON_DISK or any(name in os.environ for name in _CHOSEN_BY):
        return usual
    try:
        room = os.statvfs(_IN_MEMORY)
    except OSError:
        return usual
    is_fit = os.access(_IN_MEMORY, os.W_OK | os.X_OK) and room.f_bavail * room.f_frsize >= _ENOUGH
    return _IN_MEMORY if is_fit else usual


@contextmanager
def _alone(base: Path) -> Generator[None]:
    """Keep other runs from looking: between its making and its lock, a directory looks abandoned."""
    directory = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _remove_abandoned(base: Path) -> None:
    for path in base.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            # Killed while it removed itself: one that is being made has no lock yet, but that is not now.
            shutil.rmtree(path, ignore_errors=True)
            continue
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
