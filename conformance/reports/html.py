"""The matrix as one HTML file that needs nothing else: clauses x adapters, each clause's text, why, and failures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from conformance.clause import DEFAULT_PARAMETERS
from conformance.message import replay_of, timeline
from conformance.outcome import Failure, Outcome, Result
from conformance.report import ClauseText, Report
from conformance.reports.matrix import Group, Matrix, Row, matrices

_HERE: Final = Path(__file__).parent
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
# Colour is never the only sign: each outcome has its own mark and word.
_SIGNS: Final = {
    Outcome.PASS: ("✓", "pass"),
    Outcome.FAIL: ("✕", "fail"),
    Outcome.WARN: ("!", "warn"),
    Outcome.WAIVED: ("~", "waived"),
    Outcome.NOT_TESTED: ("?", "not tested"),
    Outcome.HARNESS_ERROR: ("⚠", "harness error"),
    Outcome.NOT_APPLICABLE: ("·", "n/a"),
}
_MEANINGS: Final = {
    Outcome.PASS: "tried and met",
    Outcome.FAIL: "a MUST that is not met",
    Outcome.WARN: "a SHOULD that is not met",
    Outcome.WAIVED: "a declared gap: tried, and not met as declared",
    Outcome.NOT_TESTED: "could not be tried, or builds on a clause that is not met",
    Outcome.HARNESS_ERROR: "the harness went wrong",
    Outcome.NOT_APPLICABLE: "needs what the adapter does not declare",
}


def to_html(reports: Sequence[Report]) -> str:
    """The whole document."""
    shown = matrices(reports)
    body = "".join((_head(reports, shown), *map(_section, shown), _foot(reports)))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>Conformance matrix</title>
<style>
{(_HERE / "matrix.css").read_text(encoding="utf-8")}</style>
</head>
<body>
{body}<script>
{(_HERE / "matrix.js").read_text(encoding="utf-8")}</script>
</body>
</html>
"""


def _head(reports: Sequence[Report], shown: Sequence[Matrix]) -> str:
    clauses = sum(len(matrix.rows) for matrix in shown)
    adapters = len({report.subject.name for report in reports})
    ports = "".join(f'<a href="#{escape(matrix.port)}">{escape(matrix.port)}</a>' for matrix in shown)
    used = {result.outcome for report in reports for result in report.results}
    legend = "".join(
        f'<li title="{escape(_MEANINGS[outcome])}">{_sign(outcome)}</li>' for outcome in _SIGNS if outcome in used
    )
    return f"""<header class="page">
<h1>Conformance matrix</h1>
<p>{clauses} clauses, {adapters} adapter{"" if adapters == 1 else "s"}.
Open a clause to read why it matters, and what went wrong where.</p>
<nav>{ports}</nav>
<div class="tools" hidden>
<input type="search" placeholder="Find a clause" aria-label="Find a clause">
<label><input type="checkbox"> only what is not met everywhere</label>
</div>
<ul class="legend">{legend}</ul>
</header>
"""


def _section(matrix: Matrix) -> str:
    cards = "".join(_card(name, report) for name, report in zip(matrix.names, matrix.reports, strict=True))
    heads = "".join(f"<span>{escape(name)}</span>" for name in matrix.names)
    groups = "".join(_group(group, matrix) for group in matrix.groups)
    return f"""<section id="{escape(matrix.port)}" style="--columns: {len(matrix.names)}">
<h2>{escape(matrix.port)}</h2>
<div class="cards">{cards}</div>
<div class="heads" aria-hidden="true"><span>Clause</span>{heads}</div>
{groups}</section>
"""


def _card(name: str, report: Report) -> str:
    counts = report.counts
    bar = "".join(
        f'<i class="{_css(outcome)}" style="flex-grow: {counts[outcome]}"></i>' for outcome in _SIGNS if counts[outcome]
    )
    told = " · ".join(f"{counts[outcome]} {_SIGNS[outcome][1]}" for outcome in _SIGNS if counts[outcome])
    subject = report.subject
    facts = [f"{report.seconds:.1f} s", *([subject.server] if subject.server else [])]
    facts += [
        f"{name.replace('_', ' ')}: {value}"
        for name, value in subject.parameters.items()
        if value != getattr(DEFAULT_PARAMETERS, name, None)
    ]
    return f"""<article class="card exit-{int(report.exit_code)}">
<h3>{escape(name)}</h3>
<p class="verdict">{escape(report.verdict)}</p>
<div class="bar">{bar}</div>
<p class="counts">{escape(told)}</p>
<p class="facts">{escape(" · ".join(facts))}</p>
</article>
"""


def _group(group: Group, matrix: Matrix) -> str:
    rows = "".join(_row(row, matrix) for row in group.rows)
    return f'<div class="group"><h3>{escape(group.topic)}</h3>\n{rows}</div>\n'


def _row(row: Row, matrix: Matrix) -> str:
    clause = row.clause
    cells = "".join(
        f'<span class="cell" data-adapter="{escape(name)}">{"" if cell is None else _sign(cell.outcome)}</span>'
        for name, cell in zip(matrix.names, row.cells, strict=True)
    )
    level = "" if clause.level == "MUST" else f' <em class="level">{escape(clause.level)}</em>'
    met = "" if row.is_met_by_all else ' data-unmet=""'
    return f"""<details id="{escape(clause.id)}"{met}>
<summary><span class="clause"><code>{escape(clause.id)}</code>{level} {escape(clause.text)}</span>{cells}</summary>
<div class="more">{_about(clause)}{"".join(_found(row, matrix))}</div>
</details>
"""


def _about(clause: ClauseText) -> str:
    hints = "".join(f"<li>{escape(hint)}</li>" for hint in clause.hints)
    needs = (
        f"<p>Needs {', '.join(f'<code>{escape(need)}</code>' for need in clause.needs)}.</p>" if clause.needs else ""
    )
    after = ", ".join(f'<a href="#{escape(id)}">{escape(id)}</a>' for id in clause.after)  # noqa: A001 - a clause's
    builds = f"<p>Builds on {after}.</p>" if after else ""
    return (
        f"<p><b>Why it matters.</b> {escape(clause.why)}</p>"
        f"<p><b>If it fails, check</b></p><ul>{hints}</ul>{needs}{builds}"
    )


def _found(row: Row, matrix: Matrix) -> Iterable[str]:
    for name, report, cell in zip(matrix.names, matrix.reports, row.cells, strict=True):
        if cell is None or cell.outcome is Outcome.PASS:
            continue
        reason = f"<p>{escape(cell.reason)}</p>" if cell.reason else ""
        failure = _failure(report, cell, cell.failure) if cell.failure is not None else ""
        head = f"<h4>{escape(name)} {_sign(cell.outcome)}</h4>"
        yield f'<div class="found {_css(cell.outcome)}">{head}{reason}{failure}</div>'


def _failure(report: Report, cell: Result, failure: Failure) -> str:
    calls = "\n".join(line.removeprefix("    ") for line in timeline(failure.history)) if failure.history else ""
    happened = f"<pre>{escape(calls)}</pre>" if calls else ""
    replay = replay_of(report, cell.clause_id)
    return (
        f"<p><b>{escape(failure.contradiction)}</b></p>"
        f"<dl><dt>Expected</dt><dd>{escape(failure.expected)}</dd>"
        f"<dt>Observed</dt><dd>{escape(failure.observed)}</dd></dl>"
        f'{happened}<p class="replay">Again: <code>{escape(replay)}</code></p>'
    )


def _foot(reports: Sequence[Report]) -> str:
    runs = dict.fromkeys(
        f"{report.started_at[:16].replace('T', ' ')} UTC · workflow-adapters {report.version}"
        f" · Python {report.python} · {report.platform} · {report.loop} · seed {report.seed}"
        for report in reports
    )
    return f"<footer>{''.join(f'<p>{escape(run)}</p>' for run in runs)}</footer>\n"


def _sign(outcome: Outcome) -> str:
    mark, word = _SIGNS[outcome]
    return f'<span class="sign {_css(outcome)}"><span aria-hidden="true">{mark}</span> {word}</span>'


def _css(outcome: Outcome) -> str:
    return outcome.lower().replace("_", "-")
