"""How a server is come by, and what happens when its user is done."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any, NamedTuple

from conformance.throwaway.databases import Databases
from conformance.throwaway.errors import NotAvailableError, Refusal, ThrowawayError, UnavailableError
from conformance.throwaway.instance import Instance
from conformance.throwaway.ladder import Rung, Wanted, resume, rungs
from conformance.throwaway.leftovers import DATABASES, note_outside, remove_run, remove_server, sweep_abandoned_runs
from conformance.throwaway.probe import require_driver
from conformance.throwaway.run_directory import RunDirectory
from conformance.throwaway.server import AsyncThrowawayServer, ThrowawayServer
from conformance.throwaway.settings import complete
from conformance.throwaway.to_the_end import in_threads
from conformance.throwaway.watchdog import start_watchdog

_STATE = "server.json"
_REMOVAL_SECONDS = 60.0


@contextlib.asynccontextmanager
async def start_postgres(
    preferred: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    shared_as: str | None = None,
) -> AsyncGenerator[AsyncThrowawayServer]:
    """`blocking_postgres` for an event loop: the loop goes on meanwhile, and cancelling leaves nothing behind."""
    async with in_threads(blocking_postgres(preferred, settings=settings, shared_as=shared_as)) as server:
        yield AsyncThrowawayServer(server)


@contextlib.contextmanager
def blocking_postgres(
    preferred: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    shared_as: str | None = None,
) -> Generator[ThrowawayServer]:
    """Starts a throwaway server, or joins one, and leaves nothing of it behind.

    Args:
        preferred: a rung (``dsn``, ``testcontainers``, ``local``, ``embedded``), a major version (``16``), or both
            (``embedded-18``). None: what CONFORMANCE_POSTGRES_RUNG says, else the first rung of the ladder that works.
        settings: for postgresql.conf, over the defaults (``fsync = off``, ``timezone = UTC``).
        shared_as: processes of this user that give the same name, rung and settings share one server, until the last
            of them has left.

    Raises:
        NotAvailableError: no rung gives a server; it has every reason.
        ThrowawayError: asyncpg is not installed, or what was there can not be removed on leaving.
        ValueError: `preferred` or `settings` make no sense.
    """
    wanted = Wanted.parse(preferred)
    completed = complete(settings)
    require_driver()
    sweep_abandoned_runs()
    run = RunDirectory.join(shared_as and json.dumps([shared_as, wanted, completed], sort_keys=True))
    try:
        with run.door():
            held = _join(run) or _start(run, wanted, completed)
        with contextlib.closing(held.databases):
            dsn = held.databases.create(template=None)
            yield ThrowawayServer(dsn, held.rung, held.version, held.reasons, held.instance, held.databases)
    finally:
        _leave(run)


class _Held(NamedTuple):
    rung: str
    version: str
    reasons: tuple[Refusal, ...]
    instance: Instance
    databases: Databases


def _join(run: RunDirectory) -> _Held | None:
    """What another process of the run has started."""
    state = run.read(_STATE)
    if state is None:
        return None
    instance = resume(state["rung"], run, state["instance"])
    databases = _databases_on(instance, state["rung"], run)
    with _closed_on_failure(databases):
        version = databases.examine()
    return _Held(state["rung"], version, tuple(Refusal(*reason) for reason in state["reasons"]), instance, databases)


def _start(run: RunDirectory, wanted: Wanted, settings: Mapping[str, str]) -> _Held:
    start_watchdog(run.path)
    reasons: list[Refusal] = []
    for rung in rungs(wanted):
        try:
            instance = rung.start(run, settings)
            databases = _databases_on(instance, rung.name, run)
            version = _prepare(databases, run, rung, wanted)
        except ThrowawayError as error:
            reasons.append(Refusal(rung.name, str(error)))
            # What can not be removed now is tried again at the end.
            with contextlib.suppress(ThrowawayError):
                remove_server(run)
        else:
            name = rung.kind if rung.kind == "dsn" else f"{rung.kind}-{_major(version)}"
            run.write(_STATE, {"rung": name, "reasons": reasons, "instance": instance.to_state()})
            return _Held(name, version, tuple(reasons), instance, databases)
    raise NotAvailableError(reasons)


def _prepare(databases: Databases, run: RunDirectory, rung: Rung, wanted: Wanted) -> str:
    with _closed_on_failure(databases):
        version = databases.examine()
        if wanted.major not in (None, _major(version)):
            raise UnavailableError(f"the server is PostgreSQL {version}, not {wanted.major}")
        if rung.kind == "dsn":
            databases.drop_abandoned()
            note_outside(run, DATABASES)
        databases.prepare()
    return version


@contextlib.contextmanager
def _closed_on_failure(databases: Databases) -> Generator[None]:
    try:
        yield
    except BaseException:
        databases.close()
        raise


def _major(version: str) -> int:
    return int(re.split(r"\D", version)[0])


def _databases_on(instance: Instance, rung: str, run: RunDirectory) -> Databases:
    # A server of ours speaks no TLS, and PGSSLMODE in the environment is about other servers.
    options: dict[str, Any] = {} if rung == "dsn" else {"ssl": False}
    return Databases(instance.dsn, run.id, copies_files=instance.has_cheap_checkpoints, **options)


def _leave(run: RunDirectory) -> None:
    try:
        with run.door():
            is_last = run.leave()
            if is_last:
                remove_run(run)
    except ThrowawayError:
        # The directory may be gone, and nobody else finds the server without it.
        remove_server(run)
        raise
    if not is_last:
        run.wait_until_removed(_REMOVAL_SECONDS)
