"""The one registry of clauses. Tests, command line, reports and docs/contract.md all read it.

A suite module registers a clause by decorating the function that tries it:

    @clause(
        "JQ-FENCE-03",
        MUST,
        text="A complete with the fence of an earlier claim writes nothing and returns SUPERSEDED.",
        why="A worker that stalled past its lease would otherwise end the job of its successor.",
        hints=["Compare started_at and attempt inside the UPDATE's WHERE, not before it."],
        after=["JQ-CLAIM-01"],
    )
    async def complete_with_an_earlier_fence(ctx: Context[JobQueue]) -> None: ...
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.clause import (
    DEFAULT_OPTIONS,
    DEFAULT_TIME_LIMIT,
    ID,
    Clause,
    Evidence,
    Level,
    Need,
    Options,
    Port,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from conformance.context import Context

A = TypeVar("A")


class Registry:
    """Clauses by id, in the order in which they are tried: prerequisites first, else as registered."""

    def __init__(self) -> None:
        self._clauses: dict[str, Clause] = {}

    def add(self, clause: Clause) -> None:
        _check(clause)
        if clause.id in self._clauses:
            raise ValueError(f"{clause.id} is taken; ids are permanent and never reused")
        self._clauses[clause.id] = clause

    def get(self, id: str) -> Clause:
        try:
            return self._clauses[id]
        except KeyError:
            raise LookupError(f"there is no clause {id!r}; `python -m conformance list` shows all") from None

    def clauses(self, port: Port | None = None) -> list[Clause]:
        return [clause for clause in in_order(self._clauses) if port is None or clause.port is port]


def in_order(clauses: Mapping[str, Clause]) -> Iterator[Clause]:
    """Yield every clause after those that its `after` names; ValueError on an unknown id or a circle."""
    done: set[str] = set()

    def visit(id: str, path: tuple[str, ...]) -> Iterator[Clause]:
        if id in done:
            return
        if id in path:
            raise ValueError(f"`after` runs in a circle: {' -> '.join((*path[path.index(id) :], id))}")
        if id not in clauses:
            raise ValueError(f"{path[-1]} is after {id}, which is no clause")
        for prerequisite in clauses[id].after:
            yield from visit(prerequisite, (*path, id))
        done.add(id)
        yield clauses[id]

    for each in clauses:
        yield from visit(each, ())


def _check(clause: Clause) -> None:
    if not ID.fullmatch(clause.id):
        raise ValueError(f"{clause.id!r} is no clause id; write PORT-AREA-NN with the port WP, JQ, SL or AI")
    for name, sentence in (("text", clause.text), ("why", clause.why), *(("a hint", hint) for hint in clause.hints)):
        if sentence != sentence.strip() or not sentence.endswith((".", "?")):
            raise ValueError(f"{clause.id}: {name} must be a sentence: {sentence!r}")
    if not clause.hints:
        raise ValueError(f"{clause.id}: at least one hint; what should its reader look at first?")


_registry = Registry()
_loaded = False


def clause(  # noqa: PLR0913 - a clause is read as a table: every column by its name
    id: str,
    level: Level,
    *,
    text: str,
    why: str,
    hints: Sequence[str],
    needs: Iterable[Need] = (),
    after: Iterable[str] = (),
    evidence: Evidence = Evidence.EXAMPLE,
    time_limit: timedelta = DEFAULT_TIME_LIMIT,
    options: Options = DEFAULT_OPTIONS,
    registry: Registry = _registry,
) -> Callable[[Callable[[Context[A]], Awaitable[None]]], Callable[[Context[A]], Awaitable[None]]]:
    """Register the decorated async function as what tries this clause; the function itself stays as it is.

    `needs` are capabilities (``SupportsDefer``) and parameters (``Requires("serves", "honoured")``), `after` the ids
    of clauses without which this one can not be judged. `options` is what the adapters are built with.
    """

    def register(function: Callable[[Context[A]], Awaitable[None]]) -> Callable[[Context[A]], Awaitable[None]]:
        tried: Any = function
        registry.add(
            Clause(
                id=id,
                level=level,
                text=text,
                why=why,
                hints=tuple(hints),
                function=tried,
                needs=tuple(needs),
                after=tuple(after),
                evidence=evidence,
                time_limit=time_limit,
                options=options,
            )
        )
        return function

    return register


def load() -> Registry:
    """Import every suite once and return the registry."""
    global _loaded  # noqa: PLW0603 - suites register themselves in the module's registry, once per process
    if not _loaded:
        suites = import_module("conformance.suites")
        for module in pkgutil.walk_packages(suites.__path__, "conformance.suites."):
            import_module(module.name)
        _loaded = True
    return _registry
