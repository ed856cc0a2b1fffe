"""Reports: one document, and every rendering of it says what the document says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from rich.console import Console

from conformance.backend import Spec
from conformance.choice import Choice
from conformance.clause import Port
from conformance.message import account, timeline
from conformance.outcome import Event, ExitCode, Failure, Outcome, Result
from conformance.report import ClauseText, Report, Subject, worst
from conformance.reports.document import (
    SCHEMA,
    DocumentError,
    read_documents,
    to_document,
    write_document,
)
from conformance.reports.html import to_html
from conformance.reports.junit import to_junit
from conformance.reports.markdown import to_markdown
from conformance.reports.matrix import matrices
from conformance.reports.rich_terminal import RichTerminal
from conformance.reports.terminal import PlainTerminal, table
from conformance.runner import run_sync
from tests.conformance.misbehaving import Forgetful, Unstamped, factory_of
from tests.conformance.pocket_clauses import REGISTRY
from tests.conformance.pocket_ledger import pocket
from workflow_adapters.ports.step_ledger import SupportsClearExcept


def judged(factory: Any, name: str, **options: Any) -> Report:
    spec = Spec(port=Port.STEP_LEDGER, factory=factory, name=name, **options)
    return run_sync(spec, Choice(seed=7), registry=REGISTRY)


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return [
        judged(pocket, "good", capabilities=[SupportsClearExcept]),
        judged(factory_of(Forgetful), "bad"),
        judged(factory_of(Forgetful), "honest", gaps={"SL-CLAIM-01": "no unique key", "SL-CLAIM-02": "the same"}),
        judged(factory_of(Unstamped), "warned"),
    ]


def made(*outcomes: Outcome, areas: tuple[str, ...] = (), **changes: Any) -> Report:
    """A report with a clause for each outcome."""
    names = [*areas, *("RULE" for _ in outcomes)]
    ids = [f"JQ-{names[place]}-{place:02}" for place in range(len(outcomes))]
    clauses = tuple(
        ClauseText(id=id, level="MUST", text="A <rule>.", why="A reason.", hints=("A hint.",)) for id in ids
    )
    results = tuple(
        Result(clause_id=id, outcome=outcome, reason=None if outcome is Outcome.PASS else "so it is")
        for id, outcome in zip(ids, outcomes, strict=True)
    )
    given: dict[str, Any] = {
        "subject": Subject(name="queue", port="JobQueue", location="m:f"),
        "clauses": clauses,
        "results": results,
        "started_at": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "seed": 7,
        "loop": "asyncio",
        "python": "3.11.7",
        "platform": "Linux",
        "version": "0",
    }
    return Report(**{**given, **changes})


@pytest.mark.parametrize(
    ("report", "code", "verdict"),
    [
        (made(Outcome.PASS), 0, "Conformant."),
        (made(Outcome.PASS, Outcome.NOT_APPLICABLE), 0, "Conformant."),
        (made(Outcome.PASS, Outcome.WARN), 0, "Conformant."),
        (made(Outcome.PASS, Outcome.WAIVED), 0, "Conformant, but for 1 declared gap."),
        (made(Outcome.PASS, selected=True), 0, "The chosen clauses are met."),
        (made(Outcome.PASS, Outcome.FAIL), 1, "Not conformant: 1 MUST not met."),
        (made(Outcome.FAIL, Outcome.FAIL, Outcome.HARNESS_ERROR), 1, "Not conformant: 2 MUSTs not met."),
        (made(Outcome.PASS, leftovers="1 task"), 1, "Not conformant: closed, and has left behind 1 task."),
        (made(Outcome.PASS, refused="rows are there"), 2, "Refused: rows are there."),
        (made(Outcome.PASS, Outcome.NOT_TESTED), 3, "Incomplete: 1 clause could not be tried."),
        (made(), 3, "Incomplete: no MUST was tried."),
        (made(Outcome.NOT_APPLICABLE), 3, "Incomplete: no MUST was tried."),
        (
            made(Outcome.WARN, Outcome.PASS, areas=("DECLARE",)),
            3,
            "Incomplete: methods of capabilities that are not declared were not tried.",
        ),
        (made(Outcome.PASS, Outcome.HARNESS_ERROR), 4, "Harness error: 1 clause could not be judged."),
    ],
)
def test_verdicts(report: Report, code: int, verdict: str) -> None:
    assert (report.exit_code, report.verdict) == (code, verdict)


def test_the_worst_of_several_is_what_is_certain() -> None:
    assert worst([made(Outcome.PASS), made(Outcome.NOT_TESTED), made(Outcome.FAIL)]) is ExitCode.NOT_CONFORMANT
    assert worst([]) is ExitCode.INCOMPLETE


def test_the_document_is_valid_and_gives_the_same_reports_back(reports: list[Report], tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_document(reports, path)
    document = json.loads(path.read_text())
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    assert read_documents([path]) == reports


def test_the_schema_allows_nothing_else(reports: list[Report]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for spoil in (
        lambda document: document.update(more=1),
        lambda document: document["reports"][0]["results"][0].update(outcome="OK"),
        lambda document: document["clauses"][0].pop("why"),
    ):
        document = json.loads(json.dumps(to_document(reports)))
        spoil(document)
        assert not validator.is_valid(document)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "its format is not 'workflow-adapters-conformance'"),
        ('{"format": "workflow-adapters-conformance", "version": 2}', "it has version 2, this harness reads 1"),
        ('{"format": "workflow-adapters-conformance"}', "'version'"),
        ("{", "is no conformance report"),
    ],
)
def test_a_file_that_is_no_report_is_named(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(DocumentError, match=re.escape(said)) as caught:
        read_documents([path])
    assert str(path) in str(caught.value)
    with pytest.raises(DocumentError, match="No such file"):
        read_documents([tmp_path / "none.json"])


def test_junit_counts_and_words_what_is_not_met(reports: list[Report]) -> None:
    root = ET.fromstring(to_junit(reports))
    suites = {suite.get("name"): suite for suite in root}
    bad, honest = suites["bad StepLedger"], suites["honest StepLedger"]
    assert (bad.get("tests"), bad.get("failures"), bad.get("errors"), bad.get("skipped")) == ("6", "1", "3", "1")
    assert (honest.get("failures"), honest.get("skipped")) == ("0", "3")
    failure = bad.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "FAIL: created by the second claim is True, but must be False."
    assert "Again: python -m conformance replay" in (failure.text or "")
    assert [case.get("name") for case in bad][-1] == "verdict"


def test_junit_survives_what_xml_can_not_hold() -> None:
    failure = Failure(expected="\x00", observed="\ud800", contradiction="\x1b <&>")
    report = made(Outcome.FAIL)
    report = replace(report, results=(replace(report.results[0], failure=failure),))
    text = to_junit([report]).encode()
    found = ET.fromstring(text).find("testsuite/testcase/failure")
    assert found is not None
    assert found.get("message") == "FAIL: \ufffd <&>"


def test_markdown_has_a_table_and_an_account_of_each_failure(reports: list[Report]) -> None:
    text = to_markdown(reports)
    assert (
        "| `SL-CLAIM-01` The first claim of a step creates it, and a second one does not. | pass | **FAIL** |" in text
    )
    assert "### SL-CLAIM-01 on bad" in text
    assert "`SL-PATCH-01` (SHOULD)" in text


class Balanced(HTMLParser):
    """Fails on elements that are closed in another order than opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_html_is_one_file_with_a_row_for_each_clause(reports: list[Report]) -> None:
    text = to_html(reports)
    found = parsed(text).found
    assert [attributes["id"] for tag, attributes in found if tag == "details"] == [
        "SL-CLAIM-01",
        "SL-CLAIM-02",
        "SL-KEEP-01",
        "SL-LIST-01",
        "SL-PATCH-01",
    ]
    loaded = [value for _, attributes in found for name, value in attributes.items() if name in {"src", "href"}]
    assert all(value is not None and value.startswith("#") for value in loaded)
    assert "url(" not in text
    assert "created by the second claim is True, but must be False." in text
    assert text.count("prefers-color-scheme: dark") == 1


def test_html_escapes_what_adapters_say() -> None:
    failure = Failure(expected="<script>1</script>", observed="</pre>", contradiction='"><img src=x>')
    event = Event(instance="A", call="claim(<b>)", started=0.0, ended=None, answer="&")
    report = made(Outcome.FAIL)
    found = replace(report.results[0], failure=replace(failure, history=(event,)))
    text = to_html([replace(report, results=(found,))])
    parsed(text)
    assert "<script>1" not in text
    assert "<img" not in text
    assert "claim(&lt;b&gt;)" in text


def test_a_matrix_stands_side_by_side_and_numbers_equal_names(reports: list[Report]) -> None:
    (matrix,) = matrices([*reports, reports[0]])
    assert matrix.names == ("good", "bad", "honest", "warned", "good (2)")
    row = next(row for row in matrix.rows if row.clause.id == "SL-CLAIM-01")
    assert [cell.outcome.value for cell in row.cells if cell] == ["PASS", "FAIL", "WAIVED", "PASS", "PASS"]
    lines = table(matrix)
    assert lines[0].split()[1:4] == ["good", "bad", "honest"]
    assert any(line.split() == ["SL-CLAIM-02", "PASS", "NOT_TESTED", "WAIVED", "PASS", "PASS"] for line in lines)


def test_the_plain_terminal_tells_failures_and_the_verdict(reports: list[Report]) -> None:
    out = StringIO()
    shown = PlainTerminal(out)
    shown.end(reports[1])
    text = out.getvalue()
    assert text.startswith("FAIL SL-CLAIM-01 (MUST)")
    assert "NOT_TESTED SL-CLAIM-02, SL-PATCH-01: builds on what is not met\n" in text
    assert text.rstrip().endswith("Not conformant: 1 MUST not met.")


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
