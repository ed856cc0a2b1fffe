"""A run as it shows on a terminal: with rich where that is installed, in plain text everywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol, TextIO

from conformance.backend import Spec
from conformance.clause import Clause
from conformance.message import account
from conformance.outcome import BUILDS_ON, Outcome, Result
from conformance.report import Report
from conformance.reports.matrix import Matrix, matrices

QUIET: Final = frozenset({Outcome.PASS, Outcome.NOT_APPLICABLE})
_MOST_IDS: Final = 8
_BLOCKED: Final = "builds on what is not met"
IN_FULL: Final = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.HARNESS_ERROR})
NAMES: Final = {
    Outcome.PASS: "passed",
    Outcome.FAIL: "failed",
    Outcome.WARN: "warned",
    Outcome.WAIVED: "waived",
    Outcome.NOT_TESTED: "not tested",
    Outcome.HARNESS_ERROR: "harness errors",
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
        self._say(f"{spec.port.title} of {spec.name}: {total} clauses")

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
    reasons: dict[tuple[Outcome, str], list[str]] = {}
    for result in report.results:
        if result.outcome not in IN_FULL | QUIET:
            reason = result.reason or ""
            told = _BLOCKED if reason.startswith(BUILDS_ON) else reason
            reasons.setdefault((result.outcome, told), []).append(result.clause_id)
    short = [f"{outcome} {_some(ids)}: {reason}" for (outcome, reason), ids in reasons.items()]
    return [*full, *(["\n".join(short)] if short else [])]


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
        [f"  {row.clause.id}", *(cell.outcome.value if cell is not None else "" for cell in row.cells)]
        for row in matrix.rows
        if not row.is_met_by_all
    ]
    widths = [max(len(line[place]) for line in [heads, *body]) for place in range(len(heads))]
    lines = [heads, ["-" * width for width in widths], *body]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def fraction(counts: Counter[Outcome]) -> str:
    """How many of the clauses that apply are met, as ``11/12``; ``-`` where none applies."""
    applicable = counts.total() - counts[Outcome.NOT_APPLICABLE]
    return f"{counts[Outcome.PASS]}/{applicable}" if applicable else "-"
