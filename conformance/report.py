"""What a run found out about one adapter: every rendering is made from this alone."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.clause import Clause, Level, Port, name_of
from conformance.outcome import ExitCode, Outcome, Result
from conformance.wording import counted

UNDECLARED_AREA = "DECLARE"
"""Clauses on what is declared: where one of them warns, methods of the adapter were not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseText:
    """A clause as readers see it."""

    id: str
    level: str
    text: str
    why: str
    hints: tuple[str, ...]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    evidence: str = "example"
    topic: str = ""
    """What the clauses that stand together with it are about."""

    @property
    def port(self) -> str:
        """The Protocol's name."""
        return Port(self.id.partition("-")[0]).title

    @property
    def area(self) -> str:
        return self.id.split("-")[1]


def text_of(clause: Clause) -> ClauseText:
    return ClauseText(
        id=clause.id,
        level=clause.level.value,
        text=clause.text,
        why=clause.why,
        hints=clause.hints,
        needs=tuple(name_of(need) for need in clause.needs),
        after=clause.after,
        evidence=clause.evidence.value,
        topic=topic_of(clause),
    )


def topic_of(clause: Clause) -> str:
    """The first sentence of the suite that the clause stands in."""
    said = inspect.getdoc(sys.modules.get(clause.function.__module__)) or clause.area
    return said.splitlines()[0].rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The adapter that was tried, and what was declared of it."""

    name: str
    port: str
    location: str
    capabilities: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    gaps: Mapping[str, str] = field(default_factory=dict[str, str])
    server: str | None = None
    """The database server that the harness found, and from where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results on one adapter, a clause each, in the order in which they were tried."""

    subject: Subject
    clauses: tuple[ClauseText, ...]
    results: tuple[Result, ...]
    started_at: str
    """ISO 8601, UTC."""
    seconds: float
    seed: int
    loop: str
    python: str
    platform: str
    version: str
    """The harness's."""
    selected: bool = False
    """Only some of the port's clauses were asked for."""
    left_out: int = 0
    """How many of the port's clauses the quick profile has left for the full one."""
    again: tuple[str, ...] = ()
    """What `replay` has to be told besides target, clause, seed and loop, so that all is as it was."""
    refused: str | None = None
    """Why nothing that was found means anything."""
    leftovers: str = ""
    """What was still there after the last adapter had been closed."""

    @property
    def pairs(self) -> Sequence[tuple[ClauseText, Result]]:
        return tuple(zip(self.clauses, self.results, strict=True))

    @property
    def counts(self) -> Counter[Outcome]:
        return Counter(result.outcome for result in self.results)

    @property
    def exit_code(self) -> ExitCode:
        """What is certain comes first: one broken MUST is enough, whatever else could not be found out."""
        if self.refused is not None:
            return ExitCode.USAGE
        if self.counts[Outcome.FAIL] or self.leftovers:
            return ExitCode.NOT_CONFORMANT
        if self.counts[Outcome.HARNESS_ERROR]:
            return ExitCode.HARNESS_ERROR
        if self.incomplete_because():
            return ExitCode.INCOMPLETE
        return ExitCode.CONFORMANT

    def incomplete_because(self) -> str | None:
        """Why a run without failures does not show conformance, or None where it does."""
        if not any(clause.level == Level.MUST and result.outcome in _TRIED for clause, result in self.pairs):
            return "no MUST was tried"
        if untested := self.counts[Outcome.NOT_TESTED]:
            return f"{counted(untested, 'clause')} could not be tried"
        if any(clause.area == UNDECLARED_AREA and result.outcome is Outcome.WARN for clause, result in self.pairs):
            return "methods of capabilities that are not declared were not tried"
        return None

    @property
    def verdict(self) -> str:
        """The run in one sentence."""
        failed, waived = self.counts[Outcome.FAIL], self.counts[Outcome.WAIVED]
        match self.exit_code:
            case ExitCode.CONFORMANT if self.selected:
                said = "The chosen clauses are met"
            case ExitCode.CONFORMANT:
                said = f"Conformant, but for {counted(waived, 'declared gap')}" if waived else "Conformant"
            case ExitCode.NOT_CONFORMANT if failed:
                said = f"Not conformant: {failed} MUST{'s' if failed > 1 else ''} not met"
            case ExitCode.NOT_CONFORMANT:
                said = f"Not conformant: closed, and has left behind {self.leftovers}"
            case ExitCode.USAGE:
                said = f"Refused: {self.refused}"
            case ExitCode.INCOMPLETE:
                said = f"Incomplete: {self.incomplete_because()}"
            case ExitCode.HARNESS_ERROR:
                said = f"Harness error: {counted(self.counts[Outcome.HARNESS_ERROR], 'clause')} could not be judged"
        if self.left_out and self.exit_code is ExitCode.CONFORMANT:
            said = f"{said}; --profile full tries {counted(self.left_out, 'clause')} more"
        return f"{said}."


_TRIED = frozenset({Outcome.PASS, Outcome.FAIL, Outcome.WAIVED})


def worst(reports: Sequence[Report]) -> ExitCode:
    """The exit code of several runs together."""
    present = {report.exit_code for report in reports}
    return next((code for code in _WORST_FIRST if code in present), ExitCode.INCOMPLETE)


_WORST_FIRST = (
    ExitCode.USAGE,
    ExitCode.NOT_CONFORMANT,
    ExitCode.HARNESS_ERROR,
    ExitCode.INCOMPLETE,
    ExitCode.CONFORMANT,
)
