"""Trying all clauses of a port, or some of them, on an adapter."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread

from conformance.answers import capabilities_of
from conformance.backend import Spec
from conformance.choice import DEFAULT_CHOICE, Choice
from conformance.clause import Clause
from conformance.conclusion import Stopwatch, concluded
from conformance.outcome import ExitCode, Result
from conformance.profiles import of_profile
from conformance.registry import Registry, load
from conformance.report import Report
from conformance.session import Session

_END_SECONDS = 60.0


class UsageError(Exception):
    """What was asked for makes no sense; the message says what does."""

    exit_code = ExitCode.USAGE


async def run(spec: Spec, choice: Choice = DEFAULT_CHOICE, *, registry: Registry | None = None) -> Report:
    """Judge the adapter in a thread of the harness's own, so that it may hang without harm to the caller's loop.

    Cancelled, it ends with the clause at hand and cleans up.
    """
    stop, ended = threading.Event(), threading.Event()

    def judge() -> Report:
        try:
            return run_sync(spec, choice, registry=registry, stop=stop)
        finally:
            ended.set()

    try:
        return await anyio.to_thread.run_sync(judge, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        stop.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ended.wait, _END_SECONDS)
        raise


def run_sync(
    spec: Spec,
    choice: Choice = DEFAULT_CHOICE,
    *,
    registry: Registry | None = None,
    on_result: Callable[[Clause, Result], None] | None = None,
    stop: threading.Event | None = None,
) -> Report:
    """Judge the adapter; UsageError when the spec or the choice names what does not exist."""
    known = registry or load()
    check_spec(spec, known)
    chosen = choose(spec, choice, known)
    session, watch = Session(spec, known, choice), Stopwatch()
    try:
        tried = _tried(session, chosen, on_result, stop)
    except BaseException:
        session.close()
        raise
    return concluded(spec, session.choice, tried, [session.conclude()], watch, known)


def _tried(
    session: Session,
    chosen: Sequence[Clause],
    on_result: Callable[[Clause, Result], None] | None,
    stop: threading.Event | None,
) -> list[tuple[Clause, Result]]:
    tried: list[tuple[Clause, Result]] = []
    for clause in chosen:
        if stop is not None and stop.is_set():
            break
        result = session.check(clause.id)
        tried.append((clause, result))
        if on_result is not None:
            on_result(clause, result)
    return tried


def choose(spec: Spec, choice: Choice, registry: Registry) -> list[Clause]:
    """The port's clauses that the choice is about, in the order in which they are tried."""
    only = choice.only
    clauses = registry.clauses(spec.port)
    for pattern in only:
        if not any(fnmatch.fnmatchcase(clause.id, pattern) for clause in clauses):
            raise UsageError(f"no clause of {spec.port.title} matches {pattern!r}")
    if only:
        return [clause for clause in clauses if any(fnmatch.fnmatchcase(clause.id, name) for name in only)]
    return of_profile(clauses, choice.profile)


def check_spec(spec: Spec, registry: Registry) -> None:
    """UsageError when a capability or a gap is none of the port."""
    known = capabilities_of(spec.port)
    for capability in spec.promised - frozenset(known):
        names = ", ".join(each.__name__ for each in known)
        raise UsageError(f"{spec.name}: {capability.__name__} is no capability of {spec.port.title}; it has {names}")
    clauses = {clause.id: clause for clause in registry.clauses(spec.port)}
    for gap, reason in spec.gaps.items():
        if not reason.strip():
            raise UsageError(f"{spec.name}: the gap {gap} has no reason")
        if gap in {each.__name__ for each in known}:
            continue
        if gap not in clauses:
            raise UsageError(f"{spec.name}: the gap {gap!r} is neither a clause nor a capability of {spec.port.title}")
        if (lack := spec.lacks(clauses[gap])) is not None:
            raise UsageError(f"{spec.name}: the gap {gap} is about a clause that does not apply: the adapter {lack}")
