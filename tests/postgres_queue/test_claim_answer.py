"""What a claim answers is read as everything else is, only faster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workflow_adapters.postgres.claim_answer import Seen, read_answer
from workflow_adapters.sql.tables import CLAIMED_JOB

PAYLOADS: list[dict[str, Any]] = [
    {"_workflowId": "w"},
    {"_workflowId": "", "a": [1, {"b": None}], "c": 1e300},
    {"_workflowId": "w", "_definitionVersion": "v", "_groupKey": "g", "x": "ä\u2028"},
    {"_workflowId": "w", "_definitionVersion": 3, "_groupKey": None},
    {"_workflowId": "w", "_groupKey": 1.5, "n": 10**300},
]


def row(job_id: str, payload: dict[str, Any], status: str | None = "RUNNING") -> list[Any]:
    return [job_id, "r", "s", 5, 2, 3, json.dumps(payload), 1_764_427_906_970, status, None, 1234]


def seen_row(job_id: str, turn: int | None = None) -> list[Any]:
    return [job_id, None, None, 5, None, None, None, None, None, turn, 1234]


@pytest.mark.parametrize("payload", PAYLOADS, ids=json.dumps)
def test_a_job_is_read_as_by_the_mapping(payload: dict[str, Any]) -> None:
    first, second = row("a", payload), row("b", {"_workflowId": "other"})
    answer = read_answer([first, second])
    width = len(CLAIMED_JOB.columns)
    assert answer.jobs == [CLAIMED_JOB.read(first[:width]), CLAIMED_JOB.read(second[:width])]
    assert answer.milliseconds == 1.234


@pytest.mark.parametrize("unreadable", ["[" * 5000 + "]" * 5000, "1" * 5000])
def test_a_payload_that_can_not_be_read_costs_no_other_job(unreadable: str) -> None:
    bad = row("b", PAYLOADS[0])
    bad[CLAIMED_JOB.columns.index(CLAIMED_JOB["payload"])] = f'{{"_workflowId": "w", "x": {unreadable}}}'
    good = [row("a", PAYLOADS[0]), row("c", PAYLOADS[2])]
    answer = read_answer([good[0], bad, good[1]])
    assert answer.jobs == read_answer(good).jobs
    assert [(job.id, job.fence) for job in answer.unreadable] == [
        ("b", read_answer([row("b", {"_workflowId": "w"})]).jobs[0].fence)
    ]
    assert answer.failed == 1


def test_dead_jobs_candidates_and_what_may_be_behind_them_are_told_apart() -> None:
    answer = read_answer(
        [row("a", PAYLOADS[0]), row("dead", {}, "FAILED"), seen_row("a"), seen_row("b", 7), seen_row("")]
    )
    assert [job.job_id for job in answer.jobs] == ["a"]
    assert answer.failed == 1
    assert answer.seen == [Seen(id="b", priority=5, turn=7)]
    assert answer.more
    assert read_answer([]) == read_answer([])
    assert not read_answer([]).took
