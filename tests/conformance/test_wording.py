"""Values in failures: short, opaque ids by name, instants from the clause's start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from conformance.builders import job
from conformance.wording import Wording
from workflow_adapters.errors import NotFoundError
from workflow_adapters.records.status import Status

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (Status.RUNNING, "RUNNING"),
        ("text", "'text'"),
        ("x" * 500, "'" + "x" * 119 + "… (502 characters)"),
        (START + timedelta(milliseconds=1500), "T+1.500s"),
        (START - timedelta(hours=1), "T-3600.000s"),
        (START.astimezone(timezone(timedelta(hours=1))), "T+0.000s (UTC+01:00)"),
        (START + timedelta(days=30), "2026-01-31T00:00:00.000+00:00"),
        (datetime(2026, 1, 1), "2026-01-01T00:00:00 (naive)"),  # noqa: DTZ001 - naive is the point
        (timedelta(minutes=-5), "-300 s"),
        ([1, 2, 3, 4, 5, 6], "[1, 2, 3, 4, … 2 more]"),
        ({"a": 1}, "{'a': 1}"),
        (NotFoundError("run", "r"), "NotFoundError(run 'r' does not exist)"),
    ],
)
def test_values(value: Any, shown: str) -> None:
    assert Wording(START).show(value) == shown


def test_a_record_shows_what_is_not_its_default() -> None:
    assert Wording(START).show(job("r")) == (
        "EnqueueJobInput(workflow_run_id='r', workflow_id='flow', stage_id='stage')"
    )


def test_generated_ids_are_numbered_in_the_order_in_which_they_are_seen() -> None:
    wording = Wording(START)
    ids = ["0199f3a2-7c1e-7b33-9a55-0d6c7c1f5b01", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "0000000000000042"]
    assert [wording.show(id) for id in [*ids, ids[0]]] == ["#1", "#2", "#3", "#1"]


def test_named_ids_go_by_their_name() -> None:
    wording = Wording(START)
    wording.name("run-1-abc", "run-1")
    assert wording.show(["run-1-abc"]) == "[run-1]"
