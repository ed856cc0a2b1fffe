"""The HTML matrix: one file, whole, and safe from what adapters say."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from conformance.outcome import Event, Failure, Outcome
from conformance.report import Report
from conformance.reports.html import to_html
from tests.conformance.report_samples import made, samples


@pytest.fixture
def reports() -> list[Report]:
    return samples()


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
