"""Removes what runs have left: the one just ending, and those that died."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping

from conformance.throwaway.databases import Databases
from conformance.throwaway.docker_engine import remove_containers_of
from conformance.throwaway.errors import ThrowawayError
from conformance.throwaway.given import GivenInstance
from conformance.throwaway.processes import end_processes_on
from conformance.throwaway.run_directory import RunDirectory

CONTAINER = "has-container"
DATABASES = "has-databases"
_EXPIRED_SECONDS = 2 * 60 * 60


def note_outside(run: RunDirectory, kind: str) -> None:
    """Sets down that something of the run is to be removed outside its directory; to be called before it is made."""
    (run.path / kind).touch()


def remove_server(run: RunDirectory) -> None:
    """Removes all that attempts to get a server have made, the directory itself excepted.

    Raises:
        ThrowawayError: something can not be removed now. It stays noted.
    """
    for kind, remove in _OUTSIDE.items():
        if (run.path / kind).exists():
            remove(run.id)
            (run.path / kind).unlink()
    data = run.path / "data"
    end_processes_on(data)
    if data.exists():
        shutil.rmtree(data)


def remove_run(run: RunDirectory) -> None:
    """Removes everything of a run, whose directory is locked exclusively, and lets go.

    Raises:
        ThrowawayError: something can not be removed now. The directory stays, so that a later run tries again.
    """
    try:
        remove_server(run)
        run.remove()
    finally:
        run.let_go()


def sweep_abandoned_runs() -> None:
    """Removes what runs of this user left on this machine that were killed together with their watchdog.

    This waits for no engine and no given server. What is there goes when a run next uses them: the containers by
    `sweep_abandoned_containers`, the databases by `Databases.drop_abandoned`.
    """
    for run in RunDirectory.abandoned():
        (run.path / DATABASES).unlink(missing_ok=True)
        if run.age > _EXPIRED_SECONDS:
            # From that age on the label alone is enough to find the container.
            (run.path / CONTAINER).unlink(missing_ok=True)
        if (run.path / CONTAINER).exists():
            run.let_go()
        else:
            with contextlib.suppress(ThrowawayError, OSError):
                remove_run(run)


def sweep_abandoned_containers() -> None:
    """Removes the containers of such runs. To be called where an engine answers."""
    for run in RunDirectory.abandoned():
        if (run.path / CONTAINER).exists():
            with contextlib.suppress(ThrowawayError, OSError):
                remove_run(run)
        else:
            run.let_go()


def _drop_databases_of(server: str) -> None:
    databases = Databases(GivenInstance().dsn, server, copies_files=False)
    try:
        databases.drop_all()
    finally:
        databases.close()


_OUTSIDE: Mapping[str, Callable[[str], None]] = {CONTAINER: remove_containers_of, DATABASES: _drop_databases_of}
