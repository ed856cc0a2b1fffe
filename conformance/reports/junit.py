"""JUnit XML, as continuous-integration servers read it: a suite for each adapter and port, a case for each clause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from conformance.message import account
from conformance.outcome import Outcome, Result
from conformance.report import ClauseText, Report

_ELEMENTS: Final = {
    Outcome.FAIL: "failure",
    Outcome.NOT_TESTED: "error",
    Outcome.HARNESS_ERROR: "error",
    Outcome.NOT_APPLICABLE: "skipped",
    Outcome.WAIVED: "skipped",
}
# What XML 1.0 can not hold, escaped or not.
_UNWRITABLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(reports: Sequence[Report]) -> str:
    """The document's text. A WARN is a passed case with the account of it in its output."""
    root = ET.Element("testsuites", {"name": "conformance"})
    for report in reports:
        root.append(_suite(report))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(report: Report) -> ET.Element:
    cases = [_case(report, clause, result) for clause, result in report.pairs]
    verdict = _verdict_case(report)
    cases += [] if verdict is None else [verdict]
    suite = ET.Element(
        "testsuite",
        {
            "name": f"{report.subject.name} {report.subject.port}",
            "timestamp": report.started_at,
            "time": f"{report.seconds:.3f}",
            "tests": str(len(cases)),
            **{f"{kind}s" if kind != "skipped" else kind: str(_count(cases, kind)) for kind in _KINDS},
        },
    )
    suite.extend(cases)
    return suite


_KINDS: Final = ("failure", "error", "skipped")


def _count(cases: Sequence[ET.Element], kind: str) -> int:
    return sum(case.find(kind) is not None for case in cases)


def _case(report: Report, clause: ClauseText, result: Result) -> ET.Element:
    case = ET.Element(
        "testcase",
        {
            "classname": f"{report.subject.name}.{report.subject.port}",
            "name": f"{clause.id} {_clean(clause.text)}",
            "time": f"{result.seconds:.3f}",
        },
    )
    kind = _ELEMENTS.get(result.outcome)
    if kind is not None:
        said = result.failure.contradiction if result.failure is not None else result.reason or ""
        detail = ET.SubElement(case, kind, {"message": _clean(f"{result.outcome}: {said}")})
        detail.text = _clean(account(report, clause, result)) if kind != "skipped" else None
    elif result.outcome is Outcome.WARN:
        ET.SubElement(case, "system-out").text = _clean(account(report, clause, result))
    return case


def _verdict_case(report: Report) -> ET.Element | None:
    """What is wrong with the run as a whole, and shows at no clause."""
    if report.refused is None and not report.leftovers and report.incomplete_because() is None:
        return None
    case = ET.Element(
        "testcase", {"classname": f"{report.subject.name}.{report.subject.port}", "name": "verdict", "time": "0.000"}
    )
    ET.SubElement(case, "error", {"message": _clean(report.verdict)})
    return case


def _clean(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
