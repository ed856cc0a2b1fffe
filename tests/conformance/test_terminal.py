"""What a terminal shows, and how an account of a failure reads."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from conformance.backend import Spec
from conformance.clause import Port
from conformance.message import account, timeline
from conformance.outcome import Event, Outcome
from conformance.report import Report, Subject
from conformance.reports.markdown import to_markdown
from conformance.reports.rich_terminal import RichTerminal
from conformance.reports.terminal import PlainTerminal
from tests.conformance.pocket_clauses import REGISTRY
from tests.conformance.pocket_ledger import pocket
from tests.conformance.report_samples import made, samples


@pytest.fixture
def reports() -> list[Report]:
    return samples()


def test_markdown_has_a_table_and_an_account_of_each_failure(reports: list[Report]) -> None:
    text = to_markdown(reports)
    assert (
        "| `SL-CLAIM-01` The first claim of a step creates it, and a second one does not. | pass | **FAIL** |" in text
    )
    assert "### SL-CLAIM-01 on bad" in text
    assert "`SL-PATCH-01` (SHOULD)" in text


def test_the_plain_terminal_tells_failures_and_the_verdict(reports: list[Report]) -> None:
    out = StringIO()
    shown = PlainTerminal(out)
    shown.end(reports[1])
    text = out.getvalue()
    assert text.startswith("FAIL SL-CLAIM-01 (MUST)")
    assert "NOT_TESTED SL-CLAIM-02, SL-PATCH-01: builds on SL-CLAIM-01, which is FAIL\n" in text
    assert text.rstrip().endswith("Not conformant: 1 MUST not met.")


def unreachable(count: int = 12) -> Report:
    """Nothing could be tried; but for the first, each clause builds on the one before."""
    report = made(*[Outcome.NOT_TESTED] * count)
    ids = [result.clause_id for result in report.results]
    reasons = ["no Postgres can be had", *(f"builds on {id}, which is NOT_TESTED" for id in ids)]
    results = [replace(result, reason=reason) for result, reason in zip(report.results, reasons, strict=False)]
    return replace(report, results=tuple(results))


def test_what_could_not_be_tried_for_one_reason_is_one_line() -> None:
    out = StringIO()
    PlainTerminal(out).end(unreachable())
    line = next(line for line in out.getvalue().splitlines() if line.startswith("NOT_TESTED"))
    assert line.endswith("JQ-RULE-07 and 4 more: no Postgres can be had")
    assert "builds on" not in out.getvalue()


def test_the_tables_count_what_nobody_tried_where_that_is_much() -> None:
    good = made(*[Outcome.PASS] * 12)
    out = StringIO()
    PlainTerminal(out).summary([good, unreachable()])
    assert [line.split() for line in out.getvalue().splitlines() if "NOT_TESTED" in line] == [
        ["12", "clauses", "NOT_TESTED"]
    ]
    console = Console(file=StringIO(), width=120, force_terminal=True, color_system=None)
    RichTerminal(console=console).summary([good, unreachable()])
    assert console.file.getvalue().count("NOT_TESTED") == 1  # pyright: ignore[reportAttributeAccessIssue] - a StringIO
    few = StringIO()
    PlainTerminal(few).summary([made(*[Outcome.PASS] * 3), unreachable(3)])
    assert few.getvalue().count("NOT_TESTED") == 3


def test_the_terminal_with_rich_says_the_same(reports: list[Report]) -> None:
    console = Console(file=StringIO(), width=120, force_terminal=True, color_system=None)
    shown = RichTerminal(console=console)
    spec = Spec(port=Port.STEP_LEDGER, factory=pocket, name="bad")
    shown.begin(spec, 2)
    for clause, (_, result) in zip(REGISTRY.clauses(), reports[1].pairs, strict=True):
        shown.result(clause, result)
    shown.end(reports[1])
    shown.summary(reports)
    text = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue] - the file is the StringIO above
    assert "FAIL SL-CLAIM-01 (MUST)" in text
    assert "Not conformant: 1 MUST not met." in text
    assert "SL-CLAIM-02" in text
    assert "NOT_TESTED" in text


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    name = "store[1] [/x] :warning:"
    report = made(Outcome.FAIL, subject=Subject(name=name, port="JobQueue [/y]", location="m:f"))
    console = Console(file=StringIO(), width=120)
    RichTerminal(console=console).summary([report])
    shown = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue] - a StringIO
    assert name in shown
    assert "JobQueue [/y]" in shown


def test_a_narrow_terminal_breaks_no_command(reports: list[Report]) -> None:
    console = Console(file=StringIO(), width=40)
    RichTerminal(console=console).end(reports[1])
    clause, result = reports[1].pairs[0]
    again = next(line for line in account(reports[1], clause, result).splitlines() if "Again: " in line)
    assert len(again) > 40
    assert again in console.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue] - a StringIO


def test_an_account_has_its_parts_in_order(reports: list[Report]) -> None:
    clause, result = reports[1].pairs[0]
    text = account(reports[1], clause, result)
    parts = ["FAIL SL-CLAIM-01 (MUST)", "The first claim", "Why it matters", "Expected", "Observed", "What happened"]
    parts += ["is True, but must be False", "If it fails, check", "Again: python -m conformance replay"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "Traceback" not in text


def test_calls_that_overlap_are_drawn_and_others_are_not() -> None:
    def event(instance: str, started: float, ended: float | None) -> Event:
        return Event(instance=instance, call="claim()", started=started, ended=ended, answer="None")

    one_by_one = list(timeline([event("A", 0.0, 1.0), event("B", 1.0, 2.0)]))
    assert one_by_one == ["    A  claim() -> None", "    B  claim() -> None"]
    race = list(timeline([event("A", 0.0, 2.0), event("B", 1.0, None)]))
    assert race == [
        "    A  [======================]  claim() -> None",
        "    B              [==========>  claim() -> None",
    ]
