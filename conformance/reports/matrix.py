"""Clauses x adapters: the results of several reports side by side, port by port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.outcome import Outcome, Result
from conformance.report import ClauseText, Report


@dataclass(frozen=True, slots=True)
class Row:
    """One clause; `cells` stand in the order of the matrix's reports, None where a report lacks the clause."""

    clause: ClauseText
    cells: tuple[Result | None, ...]

    @property
    def is_met_by_all(self) -> bool:
        return all(cell is None or cell.outcome in _QUIET for cell in self.cells)

    @property
    def is_untried(self) -> bool:
        """Not tried on some adapter, and met by, or not applicable to, all others."""
        return all(cell is None or cell.outcome in _QUIET | {Outcome.NOT_TESTED} for cell in self.cells)


_QUIET = frozenset({Outcome.PASS, Outcome.NOT_APPLICABLE})


@dataclass(frozen=True, slots=True)
class Group:
    """The clauses on one topic."""

    topic: str
    rows: tuple[Row, ...]

    def counts(self, column: int) -> Counter[Outcome]:
        """How many clauses of the topic have which outcome in that report."""
        return Counter(cell.outcome for row in self.rows if (cell := row.cells[column]) is not None)


@dataclass(frozen=True, slots=True)
class Matrix:
    """One port."""

    port: str
    reports: tuple[Report, ...]
    groups: tuple[Group, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called; a name that two reports share gets its number."""
        seen: Counter[str] = Counter()
        names: list[str] = []
        for report in self.reports:
            name = report.subject.name
            seen[name] += 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return tuple(names)


def matrices(reports: Sequence[Report]) -> list[Matrix]:
    """One for each port, in the order in which the reports come."""
    ports = dict.fromkeys(report.subject.port for report in reports)
    return [_matrix(port, [report for report in reports if report.subject.port == port]) for port in ports]


def _matrix(port: str, reports: Sequence[Report]) -> Matrix:
    clauses = {clause.id: clause for report in reports for clause in report.clauses}
    found = [{result.clause_id: result for result in report.results} for report in reports]
    topics: dict[str, list[Row]] = {}
    for clause in sorted(clauses.values(), key=lambda clause: clause.id):
        row = Row(clause, tuple(results.get(clause.id) for results in found))
        topics.setdefault(clause.topic, []).append(row)
    return Matrix(port, tuple(reports), tuple(Group(topic, tuple(rows)) for topic, rows in topics.items()))
