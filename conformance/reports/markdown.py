"""The matrix as Markdown, with the account of everything that is not met below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from conformance.message import account
from conformance.outcome import Outcome, Result
from conformance.report import Report
from conformance.reports.matrix import Matrix, matrices

WORDS: Final = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "**FAIL**",
    Outcome.WARN: "warn",
    Outcome.NOT_APPLICABLE: "n/a",
    Outcome.NOT_TESTED: "**not tested**",
    Outcome.WAIVED: "waived",
    Outcome.HARNESS_ERROR: "**harness error**",
}


def to_markdown(reports: Sequence[Report]) -> str:
    """The whole document."""
    lines = ["# Conformance", ""]
    for matrix in matrices(reports):
        lines += [f"## {matrix.port}", "", *_verdicts(matrix), "", *_table(matrix), "", *_accounts(matrix)]
    return "\n".join(lines).rstrip() + "\n"


def _verdicts(matrix: Matrix) -> Iterable[str]:
    for name, report in zip(matrix.names, matrix.reports, strict=True):
        server = f", {report.subject.server}" if report.subject.server else ""
        yield f"- **{_cell(name)}**: {_cell(report.verdict)} ({report.seconds:.1f} s{server})"


def _table(matrix: Matrix) -> Iterable[str]:
    yield f"| Clause | {' | '.join(map(_cell, matrix.names))} |"
    yield f"| --- |{' --- |' * len(matrix.names)}"
    for group in matrix.groups:
        yield f"| **{_cell(group.topic)}** |{' |' * len(matrix.names)}"
        for row in group.rows:
            level = "" if row.clause.level == "MUST" else f" ({row.clause.level})"
            cells = " | ".join(_word(cell) for cell in row.cells)
            yield f"| `{row.clause.id}`{level} {_cell(row.clause.text)} | {cells} |"


def _accounts(matrix: Matrix) -> Iterable[str]:
    for name, report in zip(matrix.names, matrix.reports, strict=True):
        for clause, result in report.pairs:
            if result.outcome in {Outcome.PASS, Outcome.NOT_APPLICABLE}:
                continue
            text = account(report, clause, result)
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield from (f"### {clause.id} on {_cell(name)}", "", f"{fence}text", text, fence, "")


def _word(cell: Result | None) -> str:
    return "" if cell is None else WORDS[cell.outcome]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
