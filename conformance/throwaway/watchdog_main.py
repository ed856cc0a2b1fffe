"""The watchdog's program: ``watchdog_main.py RUN_DIRECTORY SEARCH_PATH...``.

It waits for the run's lock, which the kernel frees when the last process of the run is gone. Until then it has loaded
nothing but what waiting needs.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

_ENGINE_SECONDS = 2


def main(directory: Path, search_path: list[str]) -> None:
    lock = os.open(directory / "lock", os.O_RDWR)
    if os.fork() != 0:
        return
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        is_left = os.path.samestat(os.fstat(lock), (directory / "lock").stat())
    except FileNotFoundError:
        is_left = False
    if is_left:
        sys.path[:] = search_path
        _remove(directory, lock)


def _remove(directory: Path, lock: int) -> None:
    from conformance.throwaway.leftovers import CONTAINER, remove_run
    from conformance.throwaway.run_directory import RunDirectory

    if (directory / CONTAINER).exists():
        # An engine may still be making the container that the dead process has just asked it for.
        time.sleep(_ENGINE_SECONDS)
    remove_run(RunDirectory(directory, lock))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
