"""From the results on an adapter, and what was found when it was left, to its report."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib import metadata
from time import monotonic

from conformance.backend import Spec
from conformance.choice import Choice
from conformance.clause import Clause
from conformance.outcome import Result
from conformance.profiles import of_profile
from conformance.registry import Registry
from conformance.report import Report, Subject, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """What is known when an adapter has been left, besides the results."""

    server: str | None
    """The database server that was found, in words."""
    refused: str | None
    """Why nothing that was found means anything."""
    leftovers: str
    """What the adapter has left behind, in words."""


class Stopwatch:
    """When a trial began, and for how long it has been going on."""

    def __init__(self) -> None:
        self.started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._began = monotonic()

    @property
    def seconds(self) -> float:
        return monotonic() - self._began


def concluded(
    spec: Spec,
    choice: Choice,
    tried: Sequence[tuple[Clause, Result]],
    farewells: Sequence[Farewell],
    watch: Stopwatch,
    known: Registry,
) -> Report:
    """The report on an adapter that one process has tried, or several together. The choice has a seed."""
    assert choice.seed is not None
    return Report(
        subject=_subject(spec, _first(each.server for each in farewells)),
        clauses=tuple(text_of(clause) for clause, _ in tried),
        results=tuple(result for _, result in tried),
        started_at=watch.started_at,
        seconds=watch.seconds,
        seed=choice.seed,
        loop=choice.loop,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        version=metadata.version("workflow-adapters"),
        selected=bool(choice.only),
        left_out=0 if choice.only else _left_out(known.clauses(spec.port), choice),
        again=(*spec.declared, *choice.again()),
        refused=_first(each.refused for each in farewells),
        leftovers=", ".join(dict.fromkeys(each.leftovers for each in farewells if each.leftovers)),
    )


def _left_out(clauses: Sequence[Clause], choice: Choice) -> int:
    return len(clauses) - len(of_profile(clauses, choice.profile))


def _first(said: Iterable[str | None]) -> str | None:
    return next((each for each in said if each is not None), None)


def _subject(spec: Spec, server: str | None) -> Subject:
    return Subject(
        name=spec.name,
        port=spec.port.title,
        location=spec.location,
        capabilities=tuple(sorted(capability.__name__ for capability in spec.capabilities)),
        parameters={item.name: str(getattr(spec.parameters, item.name)) for item in fields(spec.parameters)},
        gaps=dict(spec.gaps),
        server=server,
    )
