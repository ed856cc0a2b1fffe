"""The terminal with rich: progress while clauses run, colours, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from conformance.backend import Spec
from conformance.clause import Clause
from conformance.outcome import ExitCode, Outcome, Result
from conformance.report import Report
from conformance.reports.matrix import Matrix, matrices
from conformance.reports.terminal import fraction, tally, unmet, what_is_not_met

STYLES: Final = {
    Outcome.PASS: "green",
    Outcome.FAIL: "bold red",
    Outcome.WARN: "yellow",
    Outcome.WAIVED: "magenta",
    Outcome.NOT_TESTED: "bold yellow",
    Outcome.HARNESS_ERROR: "bold red",
    Outcome.NOT_APPLICABLE: "dim",
}
_VERDICTS: Final = {
    ExitCode.CONFORMANT: "bold green",
    ExitCode.NOT_CONFORMANT: "bold red",
    ExitCode.USAGE: "bold red",
    ExitCode.INCOMPLETE: "bold yellow",
    ExitCode.HARNESS_ERROR: "bold red",
}


class RichTerminal:
    """Writes to the process's standard output."""

    def __init__(self, *, trace: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._trace = trace
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._failed = 0

    def begin(self, spec: Spec, total: int) -> None:
        self._console.print(Rule(Text.assemble((spec.name, "bold"), f"  {spec.port.title}"), align="left", style="dim"))
        self._failed = 0
        self._progress = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)
        self._progress.start()

    def result(self, clause: Clause, result: Result) -> None:
        if self._progress is None:
            return
        self._failed += result.outcome is Outcome.FAIL
        failed = f"[red]{self._failed} failed[/red]  " if self._failed else ""
        self._progress.update(self._task, advance=1, description=f"{failed}[dim]{clause.id}[/dim]")

    def end(self, report: Report) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        # A narrow terminal may fold a line, but a command with a line break in it can not be pasted.
        for paragraph in what_is_not_met(report, self._trace):
            self._console.print(_coloured(paragraph), end="\n\n", soft_wrap=True)
        self._console.print(Text(f"  {tally(report)}", "dim"), soft_wrap=True)
        self._console.print(Text(f"  {report.verdict}", _VERDICTS[report.exit_code]), soft_wrap=True)
        self._console.print()

    def summary(self, reports: Sequence[Report]) -> None:
        for matrix in matrices(reports):
            self._console.print(_table(matrix))
            self._console.print()


def _coloured(paragraph: str) -> Text:
    """The account as it is, with its first words in the colour of the outcome."""
    text = Text(paragraph)
    for outcome, style in STYLES.items():
        text.highlight_regex(rf"(?m)^{outcome}(?= )", style)
    text.highlight_regex(
        r"(?m)^  (Why it matters|Expected|Observed|What happened|If it fails, check|Again|Reason)", "bold"
    )
    return text


def _table(matrix: Matrix) -> Table:
    # As Text, since a str may hold what rich takes for markup.
    table = Table(title=Text(matrix.port, "bold"), title_justify="left", header_style="bold", border_style="dim")
    table.add_column("Topic", overflow="fold")
    for name in matrix.names:
        table.add_column(Text(name), justify="right")
    for group in matrix.groups:
        cells = [group.counts(place) for place in range(len(matrix.names))]
        table.add_row(Text(group.topic), *(Text(fraction(counts), _worst(counts)) for counts in cells))
        for label, outcomes in unmet(group.rows):
            words = [Text("") if outcome is None else Text(outcome, STYLES[outcome]) for outcome in outcomes]
            table.add_row(Text(f"  {label}", "dim"), *words)
    return table


def _worst(counts: dict[Outcome, int]) -> str:
    order = (Outcome.FAIL, Outcome.HARNESS_ERROR, Outcome.NOT_TESTED, Outcome.WARN, Outcome.WAIVED, Outcome.PASS)
    return next((STYLES[outcome] for outcome in order if counts.get(outcome)), STYLES[Outcome.NOT_APPLICABLE])
