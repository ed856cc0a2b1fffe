"""Ends the processes of a server, whoever started it.

They may run under another account, and root itself may not look at where they work or what they have open, as in a
container without CAP_SYS_PTRACE. Everybody may see how they were called and what they descend from.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from conformance.throwaway.accounts import PopenOptions, server_account
from conformance.throwaway.errors import ThrowawayError

_PROGRAMS = ("postgres", "initdb", "pg_ctl")
_POLL_SECONDS = 0.02
_GENTLE_SECONDS = 6.0
_KILL_SECONDS = 10.0


class Process(NamedTuple):
    """A live process. The time of its start tells it from a later one that was given the same number."""

    id: int
    parent: int
    started: str


def processes_on(data: Path) -> list[Process]:
    """The programs that were called with this data directory, and then all that descend from them."""
    everyone, roots = _list_by_proc(data) if Path("/proc/self/stat").exists() else _list_by_ps(data)
    found = list(roots)
    for process in found:
        found.extend(child for child in everyone if child.parent == process.id and child not in found)
    return found


def end_processes_on(data: Path, *, gently: bool = True) -> None:
    """Ends them all and removes the shared memory that a killed server leaves. Takes at most 16 s.

    Raises:
        ThrowawayError: some do not end.
    """
    postmaster = postmaster_of(data)
    if gently and (found := [process for process in processes_on(data) if process.id == postmaster]):
        # At once, but in order: it takes its own processes and shared memory with it.
        _signal_all(found, signal.SIGQUIT)
        _wait_until_gone(found, _GENTLE_SECONDS)
    while found := processes_on(data):
        # Parents first: a server would start others in their place, and initdb remove what the next step reads.
        _signal_all(found, signal.SIGKILL)
        if left := _wait_until_gone(found, _KILL_SECONDS):
            raise ThrowawayError(f"processes {[process.id for process in left]} on {data} do not end")
    _remove_shared_memory(data)
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


def _remove_shared_memory(data: Path) -> None:
    # The file is there only where the server had no time to remove it and the segment itself.
    lines = _pid_file_of(data)
    key_and_id = lines[6].split() if len(lines) > 6 else []  # noqa: PLR2004 - the seventh line of the file's format
    if len(key_and_id) == 2:  # noqa: PLR2004 - a key and an id
        # As its owner: not every root may.
        account = server_account()
        options = account.popen_options() if account else PopenOptions()
        nowhere = subprocess.DEVNULL
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(
                ["ipcrm", "-m", key_and_id[1]],
                stdout=nowhere,
                stderr=nowhere,
                cwd="/",
                timeout=10,
                check=False,
                **options,
            )


def _signal_all(processes: Iterable[Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.id, number)


def _wait_until_gone(processes: list[Process], seconds: float) -> list[Process]:
    """Those that are still there after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := [process for process in processes if _is_alive(process)]) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return left


def _is_alive(process: Process) -> bool:
    if Path("/proc/self/stat").exists():
        named = _read_stat(process.id)
        same_id = [named[1]] if named else []
    else:
        same_id = [other for other in _list_by_ps(Path())[0] if other.id == process.id]
    # Its parent may have died since.
    return any(other.started == process.started for other in same_id)


def _list_by_proc(data: Path) -> tuple[list[Process], list[Process]]:
    everyone: list[Process] = []
    roots: list[Process] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or (named := _read_stat(int(entry.name))) is None:
            continue
        name, process = named
        everyone.append(process)
        if name in _PROGRAMS:
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().split(b"\0")
                if (b"-D", os.fsencode(data)) in itertools.pairwise(command):
                    roots.append(process)
    return everyone, roots


def _read_stat(id: int) -> tuple[str, Process] | None:
    """Name and process, or None where it is dead, waited for or not."""
    try:
        stat = Path(f"/proc/{id}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may have some of its own.
    name, _, rest = stat.partition("(")[2].rpartition(")")
    state, parent, *others = rest.split()
    return None if state in ("Z", "X") else (name, Process(id, int(parent), others[17]))


def _list_by_ps(data: Path) -> tuple[list[Process], list[Process]]:
    """Where there is no /proc."""
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,stat=,command="], capture_output=True, text=True, timeout=10, check=True
    )
    everyone: list[Process] = []
    roots: list[Process] = []
    for line in listing.stdout.splitlines():
        number, parent, state, *command = line.split(maxsplit=3)
        if not state.startswith("Z"):
            everyone.append(Process(int(number), int(parent), ""))
            if f"-D {data} " in " ".join((*command, "")):
                roots.append(everyone[-1])
    return everyone, roots
