"""Starts the process that outlives a run and removes what it left, however the run ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conformance.throwaway.errors import ThrowawayError

_PROGRAM = Path(__file__).with_name("watchdog_main.py")
_START_SECONDS = 30


def start_watchdog(directory: Path) -> None:
    """Returns once the watchdog has hold of the run's lock file. The caller holds the lock.

    The watchdog is nobody's child, so that nobody has to wait for it.
    """
    search_path = [entry or str(Path.cwd()) for entry in sys.path]
    # -P: the program's directory is no place to import from.
    command = [sys.executable, "-P", _PROGRAM, directory, *search_path]
    nowhere = subprocess.DEVNULL
    log = directory / "watchdog.log"
    try:
        with log.open("a") as errors:
            subprocess.run(
                command,
                cwd="/",
                stdin=nowhere,
                stdout=nowhere,
                stderr=errors,
                timeout=_START_SECONDS,
                check=True,
                # What ends the run's whole process group must not end it too.
                start_new_session=True,
            )
    except (OSError, subprocess.SubprocessError):
        raise ThrowawayError(f"the watchdog does not start: {log.read_text(errors='replace')[-500:]}") from None
