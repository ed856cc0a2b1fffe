"""Outlives the run and removes what it left. Run as a program: ``watchdog.py RUN_DIRECTORY SEARCH_PATH...``.

It waits for the run's lock, which the kernel frees when the last process of the run is gone. Until then it has loaded
nothing but what waiting needs. SIGINT and SIGHUP of the run's terminal do not reach it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

_START_SECONDS = 30


def start_watchdog(directory: Path) -> None:
    """Returns once the watchdog waits. The caller holds the run's lock.

    It is nobody's child, so that nobody has to wait for it.
    """
    search_path = [entry or str(Path.cwd()) for entry in sys.path]
    with (directory / "watchdog.log").open("a") as log:
        subprocess.run(
            # -P: the directory of this file is no place to import from.
            [sys.executable, "-P", __file__, str(directory), *search_path],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            timeout=_START_SECONDS,
            check=True,
        )


def main(directory: Path, search_path: list[str]) -> None:
    lock = os.open(directory / "lock", os.O_RDWR)
    if os.fork() != 0:
        return
    os.setsid()
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        is_left = os.path.samestat(os.fstat(lock), (directory / "lock").stat())
    except FileNotFoundError:
        is_left = False
    if not is_left:
        return
    sys.path[:] = search_path
    from conformance.throwaway.leftovers import remove_run
    from conformance.throwaway.run_directory import RunDirectory

    remove_run(RunDirectory(directory, lock))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
