"""A run as it shows on a terminal: with rich where that is installed, in plain text everywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TextIO

from conformance.backend import Spec
from conformance.clause import Clause
from conformance.message import account
from conformance.outcome import BUILDS_ON, Outcome, Result
from conformance.report import Report
from conformance.reports.matrix import Matrix, Row, matrices
from conformance.wording import counted

QUIET: Final = frozenset({Outcome.PASS, Outcome.NOT_APPLICABLE})
_MOST_IDS: Final = 8
IN_FULL: Final = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.HARNESS_ERROR})
NAMES: Final = {
    Outcome.PASS: "passed",
    Outcome.FAIL: "failed",
    Outcome.WARN: "warned",
    Outcome.WAIVED: "waived",
    Outcome.NOT_TESTED: "not tested",
    Outcome.HARNESS_ERROR: "not judged",
    Outcome.NOT_APPLICABLE: "not applicable",
}


class Terminal(Protocol):
    """What shows the progress and the end of runs."""

    def begin(self, spec: Spec, total: int) -> None:
        """So many clauses are about to be tried on the adapter."""
        ...

    def result(self, clause: Clause, result: Result) -> None: ...

    def end(self, report: Report) -> None:
        """Everything that is not met, and the verdict."""
        ...

    def summary(self, reports: Sequence[Report]) -> None:
        """The matrices of several reports."""
        ...


def terminal(*, plain: bool = False, trace: bool = False) -> Terminal:
    """The best that this process can show."""
    if not plain:
        with contextlib.suppress(ModuleNotFoundError):
            from conformance.reports.rich_terminal import RichTerminal

            return RichTerminal(trace=trace)
    return PlainTerminal(sys.stdout, trace=trace)


class PlainTerminal:
    """Lines of text, without colours; for logs too."""

    def __init__(self, out: TextIO, *, trace: bool = False) -> None:
        self._out = out
        self._trace = trace

    def begin(self, spec: Spec, total: int) -> None:
        self._say(f"{spec.port.title} of {spec.name}: {counted(total, 'clause')}")

    def result(self, clause: Clause, result: Result) -> None:
        """Failures are told at the end, with everything else that is not met."""

    def end(self, report: Report) -> None:
        for paragraph in what_is_not_met(report, self._trace):
            self._say(paragraph)
            self._say("")
        self._say(f"  {tally(report)}")
        self._say(f"  {report.verdict}")
        self._say("")

    def summary(self, reports: Sequence[Report]) -> None:
        for matrix in matrices(reports):
            for line in table(matrix):
                self._say(line)
            self._say("")

    def _say(self, line: str) -> None:
        print(line, file=self._out, flush=True)


def what_is_not_met(report: Report, trace: bool) -> Sequence[str]:
    """A full account of each clause that was tried and is not met, and a line for each reason why others were not."""
    full = [
        account(report, clause, result, trace=trace) for clause, result in report.pairs if result.outcome in IN_FULL
    ]
    found = {result.clause_id: result for result in report.results}
    reasons: dict[tuple[Outcome, str], list[str]] = {}
    for result in report.results:
        if result.outcome not in IN_FULL | QUIET:
            reasons.setdefault((result.outcome, root_reason(result, found)), []).append(result.clause_id)
    short = [f"{outcome} {_some(ids)}: {reason}" for (outcome, reason), ids in reasons.items()]
    return [*full, *(["\n".join(short)] if short else [])]


def root_reason(result: Result, found: Mapping[str, Result]) -> str:
    """Why a clause was not tried, at the beginning of the chain of those that it builds on."""
    reason = result.reason or ""
    while reason.startswith(BUILDS_ON):
        blocking = found.get(reason.removeprefix(BUILDS_ON).partition(",")[0])
        if blocking is None or blocking.outcome is not Outcome.NOT_TESTED:
            break
        reason = blocking.reason or ""
    return reason


def _some(ids: Sequence[str]) -> str:
    more = len(ids) - _MOST_IDS
    return f"{', '.join(ids[:_MOST_IDS])}{f' and {more} more' if more > 0 else ''}"


def tally(report: Report) -> str:
    """``120 passed, 3 not applicable in 1.2 s (seed 7)``."""
    told = [f"{report.counts[outcome]} {NAMES[outcome]}" for outcome in NAMES if report.counts[outcome]]
    server = f", {report.subject.server}" if report.subject.server else ""
    return f"{', '.join(told) or 'nothing tried'} in {report.seconds:.1f} s (seed {report.seed}{server})"


def table(matrix: Matrix) -> Sequence[str]:
    """A line for each topic, and one for each clause that some adapter does not meet."""
    heads = [matrix.port, *matrix.names]
    body = [
        [group.topic, *(fraction(group.counts(place)) for place in range(len(matrix.names)))] for group in matrix.groups
    ]
    body += [
        [f"  {label}", *(outcome.value if outcome is not None else "" for outcome in outcomes)]
        for label, outcomes in unmet(matrix.rows)
    ]
    widths = [max(len(line[place]) for line in [heads, *body]) for place in range(len(heads))]
    lines = [heads, ["-" * width for width in widths], *body]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def unmet(rows: Sequence[Row]) -> Sequence[tuple[str, Sequence[Outcome | None]]]:
    """A line for each clause that some adapter does not meet; one for all that nobody tried, where those are many."""
    open_rows = [row for row in rows if not row.is_met_by_all]
    untried = [row for row in open_rows if row.is_untried]
    many = untried if len(untried) > _MOST_IDS else []
    lines: list[tuple[str, Sequence[Outcome | None]]] = [
        (row.clause.id, [cell and cell.outcome for cell in row.cells]) for row in open_rows if row not in many
    ]
    by_outcomes: dict[tuple[Outcome | None, ...], int] = {}
    for row in many:
        outcomes = tuple(
            Outcome.NOT_TESTED if cell is not None and cell.outcome is Outcome.NOT_TESTED else None
            for cell in row.cells
        )
        by_outcomes[outcomes] = by_outcomes.get(outcomes, 0) + 1
    return [*lines, *((counted(count, "clause"), outcomes) for outcomes, count in by_outcomes.items())]


def fraction(counts: Counter[Outcome]) -> str:
    """How many of the clauses that apply are met, as ``11/12``; ``-`` where none applies."""
    applicable = counts.total() - counts[Outcome.NOT_APPLICABLE]
    return f"{counts[Outcome.PASS]}/{applicable}" if applicable else "-"
