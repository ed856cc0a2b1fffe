"""Ends the processes of a server that was started in a directory, however it was started and by whom."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

from conformance.throwaway.errors import ThrowawayError

_POLL_SECONDS = 0.02
_GENTLE_SECONDS = 6.0
_KILL_SECONDS = 10.0
_IPC_RMID = 0


def processes_under(directory: Path) -> list[int]:
    """Ids of the live processes that work in `directory`: a server works in its data directory, initdb where started.

    The working directory tells them from all others, even where a number has been given anew; a dead process that
    nobody has waited for has none.
    """
    if not Path("/proc/self/cwd").exists():
        return _postmaster_by_command(directory)
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # Others' processes may be unreadable, and any may end meanwhile.
            with contextlib.suppress(OSError):
                cwd = (entry / "cwd").readlink()
                if cwd == directory or directory in cwd.parents:
                    found.append(int(entry.name))
    return found


def end_processes_under(directory: Path, *, data: Path, gently: bool = True) -> None:
    """Ends them all and removes the shared memory that a killed server leaves. Takes at most 16 s.

    Raises:
        ThrowawayError: some do not end.
    """
    shared_memory = _shared_memory_of(data)
    if gently:
        _signal_all(processes_under(directory), signal.SIGQUIT)
        _wait_until_none(directory, _GENTLE_SECONDS)
    deadline = time.monotonic() + _KILL_SECONDS
    while alive := processes_under(directory):
        _signal_all(alive, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise ThrowawayError(f"processes {alive} of the throwaway server in {directory} do not end")
        time.sleep(_POLL_SECONDS)
    if shared_memory is not None:
        _remove_shared_memory(shared_memory)
    # A new server would take the file for a live server's, where the dead one has not been waited for by its parent.
    (data / "postmaster.pid").unlink(missing_ok=True)


def postmaster_of(data: Path) -> int | None:
    """The process id of the server on this data directory, or None where none has started."""
    lines = _pid_file_of(data)
    # A single-user server, as initdb runs it, writes a negative number.
    return abs(int(lines[0])) if lines and lines[0].lstrip("-").isdecimal() else None


def _pid_file_of(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().split("\n")
    except FileNotFoundError:
        return []


def _shared_memory_of(data: Path) -> int | None:
    lines = _pid_file_of(data)
    key_and_id = lines[6].split() if len(lines) > 6 else []  # noqa: PLR2004 - the seventh line of the file's format
    return int(key_and_id[1]) if len(key_and_id) == 2 else None  # noqa: PLR2004 - a key and an id


def _remove_shared_memory(identifier: int) -> None:
    # Fails, as it should, where the server took its segment with it.
    ctypes.CDLL(None).shmctl(identifier, _IPC_RMID, None)


def _signal_all(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _wait_until_none(directory: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while processes_under(directory) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _postmaster_by_command(directory: Path) -> list[int]:
    """Where there is no /proc: the server that the pid file names, if its command line names the directory."""
    found: list[int] = []
    for pid_file in directory.glob("*/postmaster.pid"):
        process = postmaster_of(pid_file.parent)
        command = subprocess.run(
            ["ps", "-o", "command=", "-p", str(process or 0)], capture_output=True, text=True, timeout=10, check=False
        )
        if process and str(directory) in command.stdout:
            found.append(process)
    return found
