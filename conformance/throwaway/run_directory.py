"""A run directory: what a run has on disk, and how everybody else sees that the run is over.

Every process that uses the server holds a shared flock on `lock`, and the kernel takes it away however the process
ends. Whoever gets that lock exclusively therefore knows that nobody uses the server any more, and removes what is
left: the last process to leave, else the watchdog, else the next run. `door` is held by whoever starts the server or
leaves, so that each of them sees the others either before or after.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from conformance.throwaway.accounts import may_enter, server_account, temporary_directories
from conformance.throwaway.errors import ThrowawayError

_PREFIX = "workflow-adapters-run-"
_LOCK = "lock"
_POLL_SECONDS = 0.02
# Longer than a whole ladder may take, an image pulled over a slow line included.
_PATIENCE_SECONDS = 600.0


class RunDirectory:
    """A directory of this user, locked by this process."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.id = path.name.rpartition("-")[2]
        self._lock = lock

    @classmethod
    def join(cls, shared_as: str | None) -> RunDirectory:
        """The directory of the run with this name, made where it is not there yet; one of its own for None.

        The caller holds its shared lock until `leave`.
        """
        token = secrets.token_hex(6) if shared_as is None else hashlib.sha256(shared_as.encode()).hexdigest()[:12]
        path = _base_directory() / f"{_PREFIX}{os.geteuid()}-{token}"
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            _make(path)
            lock = _lock_file(path / _LOCK, fcntl.LOCK_SH)
            if lock is not None:
                return cls(path, lock)
            time.sleep(_POLL_SECONDS)  # whoever removes the directory is not done yet
        raise ThrowawayError(f"{path} is being removed and does not go away")

    @classmethod
    def abandoned(cls) -> Iterator[RunDirectory]:
        """The directories of runs of this user that are over, each locked exclusively."""
        for base in temporary_directories():
            for path in base.glob(f"{_PREFIX}{os.geteuid()}-*"):
                if not _is_ours(path):
                    continue
                # Not made where it is missing: in a directory that is just being removed it would stand in the way.
                lock = _lock_file(path / _LOCK, fcntl.LOCK_EX, create=False)
                if lock is not None:
                    yield cls(path, lock)
                else:
                    # Without its lock, which goes last, it is empty; with it, this does nothing.
                    with contextlib.suppress(OSError):
                        path.rmdir()

    @contextlib.contextmanager
    def door(self) -> Generator[None]:
        """Keeps every other process of the run from starting the server or leaving meanwhile."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (held := _lock_file(self.path / "door", fcntl.LOCK_EX)) is None:
            if not self.path.exists():
                raise ThrowawayError(f"{self.path} was removed while its server was in use")
            if time.monotonic() > deadline:
                raise ThrowawayError(f"another process of this run has been starting a server in {self.path} too long")
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            os.close(held)

    def leave(self) -> bool:
        """Lets go, unless this process is the last: then True, and the directory is locked exclusively.

        To be called with the door held.
        """
        try:
            # Taking it over is not atomic, but only the watchdog can come in between, to do what is ours to do else.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.let_go()
            return False
        return True

    def let_go(self) -> None:
        os.close(self._lock)

    def wait_until_removed(self, seconds: float) -> None:
        """Waits for whoever removes the directory, if somebody does."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            lock = _lock_file(self.path / _LOCK, fcntl.LOCK_SH)
            if lock is not None or not self.path.exists():
                if lock is not None:
                    os.close(lock)
                return
            time.sleep(_POLL_SECONDS)
        raise ThrowawayError(f"the watchdog has not removed {self.path} within {seconds:.0f} s")

    def remove(self) -> None:
        """Removes the directory, which must be locked exclusively."""
        # Under another name first: whoever joins the run now gets a fresh directory, not one that is half gone.
        doomed = self.path.rename(self.path.with_name(f"{self.path.name}.removed"))
        for entry in doomed.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != _LOCK:
                entry.unlink()
        # Last: as long as it is there, and held by us or by nobody, whoever sweeps knows what to do.
        (doomed / _LOCK).unlink()
        with contextlib.suppress(FileNotFoundError):
            # Whoever sweeps may have been quicker.
            doomed.rmdir()

    @property
    def age(self) -> float:
        """Seconds since the run began."""
        return time.time() - (self.path / _LOCK).stat().st_mtime

    def read(self, name: str) -> dict[str, Any] | None:
        try:
            return json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Writes for this user's eyes only, and all or nothing."""
        fresh = self.path / f"{name}.new"
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(content))
        fresh.rename(self.path / name)


def _base_directory() -> Path:
    account = server_account()
    for path in temporary_directories():
        if may_enter(account, path) and os.access(path, os.W_OK | os.X_OK):
            return path
    raise ThrowawayError("no temporary directory that a server can work in: set TMPDIR to one that others may enter")


def _make(path: Path) -> None:
    # Somebody who sweeps may take it for what is left of a removal, as long as it is empty: the next try mends that.
    with contextlib.suppress(FileExistsError, FileNotFoundError):
        path.mkdir(mode=0o700)
        # A server under another account passes through; it can list nothing here.
        path.chmod(0o711)
    if not _is_ours(path):
        raise ThrowawayError(f"{path} exists and is no directory of this user's alone; remove it")


def _is_ours(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return True  # removed a moment ago: the next step finds out
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not writable_by_others


def _lock_file(path: Path, kind: int, *, create: bool = True) -> int | None:
    """A locked descriptor, or None where somebody else's lock is in the way or the file is gone."""
    try:
        file = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0) | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(file)
    return None
