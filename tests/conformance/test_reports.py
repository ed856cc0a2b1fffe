"""Reports: one document, and every rendering of it says what the document says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from conformance.outcome import ExitCode, Failure, Outcome
from conformance.report import Report, worst
from conformance.reports.document import (
    SCHEMA,
    DocumentError,
    read_documents,
    to_document,
    write_document,
)
from conformance.reports.junit import to_junit
from conformance.reports.matrix import matrices
from conformance.reports.terminal import table
from tests.conformance.report_samples import made, samples


@pytest.fixture
def reports() -> list[Report]:
    return samples()


@pytest.mark.parametrize(
    ("report", "code", "verdict"),
    [
        (made(Outcome.PASS), 0, "Conformant."),
        (made(Outcome.PASS, Outcome.NOT_APPLICABLE), 0, "Conformant."),
        (made(Outcome.PASS, Outcome.WARN), 0, "Conformant."),
        (made(Outcome.PASS, Outcome.WAIVED), 0, "Conformant, but for 1 declared gap."),
        (made(Outcome.PASS, left_out=2), 0, "Conformant; --profile full tries 2 clauses more."),
        (made(Outcome.FAIL, left_out=2), 1, "Not conformant: 1 MUST not met."),
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


def test_a_matrix_stands_side_by_side_and_numbers_equal_names(reports: list[Report]) -> None:
    (matrix,) = matrices([*reports, reports[0]])
    assert matrix.names == ("good", "bad", "honest", "warned", "good (2)")
    row = next(row for row in matrix.rows if row.clause.id == "SL-CLAIM-01")
    assert [cell.outcome.value for cell in row.cells if cell] == ["PASS", "FAIL", "WAIVED", "PASS", "PASS"]
    lines = table(matrix)
    assert lines[0].split()[1:4] == ["good", "bad", "honest"]
    assert any(line.split() == ["SL-CLAIM-02", "PASS", "NOT_TESTED", "WAIVED", "PASS", "PASS"] for line in lines)
