"""The JSON document of a run: versioned, complete, and enough to make every other report from.

``schema.json`` beside this module is its JSON Schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from conformance.outcome import Event, Failure, Outcome, Result
from conformance.report import ClauseText, Report, Subject

FORMAT: Final = "workflow-adapters-conformance"
VERSION: Final = 1
SCHEMA: Final = Path(__file__).with_name("schema.json")

_Values: TypeAlias = dict[str, Any]


class DocumentError(Exception):
    """A file is no report that this version can read."""


def to_document(reports: Sequence[Report]) -> _Values:
    """The document as JSON values; each clause's text stands in it once."""
    clauses = {clause.id: clause for report in reports for clause in report.clauses}
    return {
        "format": FORMAT,
        "version": VERSION,
        "clauses": [_clause(clause) for clause in clauses.values()],
        "reports": [_report(report) for report in reports],
    }


def write_document(reports: Sequence[Report], path: Path) -> None:
    text = json.dumps(to_document(reports), indent=2, ensure_ascii=False)
    # Half a character, which an adapter may say, becomes what JSON writes for it.
    path.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def read_documents(paths: Iterable[Path]) -> list[Report]:
    """The reports of several files; DocumentError naming the file that is none."""
    return [report for path in paths for report in _read(path)]


def _read(path: Path) -> list[Report]:
    try:
        return from_document(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, DocumentError) as error:
        raise DocumentError(f"{path} is no conformance report: {error}") from error


def from_document(document: Any) -> list[Report]:
    """The reports of one document."""
    if not isinstance(document, dict) or cast("_Values", document).get("format") != FORMAT:
        raise DocumentError(f"its format is not {FORMAT!r}")
    values = cast("_Values", document)
    if values["version"] != VERSION:
        raise DocumentError(f"it has version {values['version']}, this harness reads {VERSION}")
    clauses = {each["id"]: _clause_from(each) for each in values["clauses"]}
    return [_report_from(each, clauses) for each in values["reports"]]


def _clause(clause: ClauseText) -> _Values:
    return {**asdict(clause), "port": clause.port}


def _clause_from(values: _Values) -> ClauseText:
    given: _Values = {name: _tuple(value) for name, value in values.items() if name != "port"}
    return ClauseText(**given)


def _tuple(value: Any) -> Any:
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _report(report: Report) -> _Values:
    return {
        "adapter": asdict(report.subject),
        "verdict": report.verdict,
        "exit_code": int(report.exit_code),
        "counts": {outcome.value: report.counts[outcome] for outcome in Outcome},
        "results": [asdict(result) for result in report.results],
        **{name: getattr(report, name) for name in _PLAIN},
    }


_PLAIN: Final = (
    "started_at",
    "seconds",
    "seed",
    "loop",
    "python",
    "platform",
    "version",
    "selected",
    "left_out",
    "again",
    "refused",
    "leftovers",
)
# Since the first version 1; absent from documents that are older.
_ADDED: Final = frozenset({"left_out", "again"})


def _report_from(values: _Values, clauses: Mapping[str, ClauseText]) -> Report:
    results = tuple(_result_from(each) for each in values["results"])
    subject: _Values = {name: _tuple(value) for name, value in values["adapter"].items()}
    return Report(
        subject=Subject(**subject),
        clauses=tuple(clauses[result.clause_id] for result in results),
        results=results,
        **{name: _tuple(values[name]) for name in _PLAIN if name in values or name not in _ADDED},
    )


def _result_from(values: _Values) -> Result:
    failure = None if values["failure"] is None else _failure_from(values["failure"])
    given: _Values = {**values, "outcome": Outcome(values["outcome"]), "failure": failure}
    return Result(**given)


def _failure_from(values: _Values) -> Failure:
    given: _Values = {**values, "history": tuple(Event(**event) for event in values["history"])}
    return Failure(**given)
