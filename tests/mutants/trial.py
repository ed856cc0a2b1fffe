"""What becomes of a mutant: clauses are tried on it in a process of its own, forked off one that has all loaded."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, NoReturn

from tests.mutants.catalogue import BACKENDS, Mutant
from tests.mutants.change import changed_sources, module_name
from tests.mutants.importing import imports_of_ours, replace_modules

LISTED_SECONDS: Final = 60.0
ALL_SECONDS: Final = 600.0
_SEED: Final = 1
# Clauses are timed for a machine that has nothing else to do.
_TIME_SCALE: Final = 3.0
_ACCIDENT: Final = re.compile(r"could not go on|raised (Attribute|Type|Name|UnboundLocal|Import)Error\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a clause came out. `said` is the contradiction of one that failed, else the reason."""

    clause: str
    outcome: str
    said: str = ""
    accident: bool = False
    """It failed because an adapter raised, not because an expectation was not met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Clauses to try on an adapter, changed by a mutant or (None) as it is. No clauses: all of `ports`."""

    mutant: Mutant | None
    backend: str
    clauses: Sequence[str] = ()
    ports: Sequence[str] = ()
    one_by_one: bool = False
    """With one instance, and one call after the other."""
    seconds: float = LISTED_SECONDS


@dataclass(slots=True)
class _Child:
    task: Task
    deadline: float
    told: bytearray = field(default_factory=bytearray)


def load(backend: str) -> None:
    """Import what the children are going to need, once for all of them."""
    import_module("conformance.registry").load()
    import_module("conformance.runner")
    import_module(BACKENDS[backend].partition(":")[0])
    family = backend.partition("-")[0]
    for name in ("anyio._backends._asyncio", f"workflow_adapters.{family}.bundle"):
        import_module(name)
    # Modules of another backend may have been loaded since it was called first.
    imports_of_ours.cache_clear()
    imports_of_ours()


def listed(mutant: Mutant) -> Task:
    """The clauses that must see the mutant."""
    return Task(mutant=mutant, backend=mutant.backend, clauses=[killer.clause for killer in mutant.killers])


def tried(tasks: Iterable[Task], at_once: int) -> Iterator[tuple[Task, list[Verdict] | str]]:
    """The verdicts on each task as it ends, or what kept it from having any."""
    waiting, running = iter(tasks), 0
    with selectors.DefaultSelector() as selector:
        while True:
            while running < at_once and (task := next(waiting, None)) is not None:
                pid, pipe = _forked(task)
                selector.register(pipe, selectors.EVENT_READ, (pid, _Child(task, time.monotonic() + task.seconds)))
                running += 1
            if not running:
                return
            selector.select(timeout=1.0)
            for key in list(selector.get_map().values()):
                pid, child = key.data
                if (answer := _answer(key.fd, pid, child)) is not None:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    running -= 1
                    yield child.task, answer


def _answer(pipe: int, pid: int, child: _Child) -> list[Verdict] | str | None:
    """What the child has said, when it has ended or its time is up."""
    ended = False
    while not ended:
        try:
            read = os.read(pipe, 1 << 16)
        except BlockingIOError:
            break
        child.told += read
        ended = not read
    if not ended and time.monotonic() < child.deadline:
        return None
    if not ended:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if not ended:
        return f"has not ended within {child.task.seconds:g} s"
    values: Any = json.loads(child.told) if child.told else "ended without a word"
    return values if isinstance(values, str) else [Verdict(**value) for value in values]


def _forked(task: Task) -> tuple[int, int]:
    receiving, sending = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(receiving)
        _child(task, sending)
    os.close(sending)
    os.set_blocking(receiving, False)
    return pid, receiving


def _child(task: Task, pipe: int) -> NoReturn:
    try:
        _silence()
        try:
            answer = json.dumps(_verdicts(task))
        except BaseException:  # noqa: BLE001 - the parent is told of whatever happened
            answer = json.dumps(traceback.format_exc())
        with os.fdopen(pipe, "w") as sending:
            sending.write(answer)
    finally:
        # Whatever the mutant has left running ends here as well.
        os._exit(0)


def _silence() -> None:
    # What adapters log, and what loops say of tasks that were left, is not the test's.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _verdicts(task: Task) -> list[Mapping[str, Any]]:
    if task.mutant is not None:
        replace_modules({module_name(file): source for file, source in changed_sources(task.mutant).items()})
    left_out: frozenset[str] = frozenset()
    if task.one_by_one:
        one_by_one = import_module("tests.mutants.one_by_one")
        one_by_one.arrange()
        left_out = one_by_one.NEEDS_COMPANY
    verdicts: list[Mapping[str, Any]] = []
    module, _, name = BACKENDS[task.backend].partition(":")
    specs = getattr(import_module(module), name)
    ports = task.ports or tuple(dict.fromkeys(clause[:2] for clause in task.clauses))
    for port in ports:
        spec = next(spec for spec in specs if spec.port.value == port)
        own = [clause for clause in task.clauses if clause.startswith(port)]
        verdicts += [_as_json(result) for result in _results(spec, own, left_out)]
    return verdicts


def _results(spec: Any, clauses: Sequence[str], left_out: frozenset[str]) -> Iterator[Any]:
    registry = import_module("conformance.registry").load()
    wanted = _with_prerequisites(registry, clauses)
    choice = import_module("conformance.choice").Choice(seed=_SEED, time_scale=_TIME_SCALE)
    session = import_module("conformance.session").Session(spec, registry, choice)
    try:
        for clause in registry.clauses(spec.port):
            if clause.id not in left_out and (clause.id in wanted or not wanted):
                yield session.check(clause.id)
    finally:
        session.close()
        import_module("conformance.servers").stop_server()


def _with_prerequisites(registry: Any, clauses: Sequence[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(clauses)
    while waiting:
        clause = waiting.pop()
        if clause not in found:
            found.add(clause)
            waiting.extend(registry.get(clause).after)
    return found


def _as_json(result: Any) -> Mapping[str, Any]:
    failure = result.failure
    said = result.reason or "" if failure is None else failure.contradiction
    accident = failure is not None and _ACCIDENT.search(said) is not None
    return {"clause": result.clause_id, "outcome": result.outcome.value, "said": said, "accident": accident}
