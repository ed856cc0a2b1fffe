"""``purge``: nothing goes that was not named, and a dry run neither deletes nor keeps other writers waiting."""

from __future__ import annotations

import sqlite3

import anyio
import pytest

from tests.cli.support import Shell
from tests.worked_examples.examples import call
from workflow_adapters import open_adapters
from workflow_adapters.cli import dry_run

TABLES = ["runs", "jobs", "published_events", "dead_events", "completed_keys", "abandoned_keys", "ai_calls"]


def test_purge(shell: Shell) -> None:
    done = shell.json("purge", "--older-than", "0s", "--only", "runs", "--only", "jobs")
    assert done == {"dry_run": False, "deleted": {"runs": 1, "jobs": 1}}
    assert shell.json("status")["runs"]["COMPLETED"] == 0
    assert "ai_calls" in shell("purge", "--older-than", "30d", "--all").stdout
    assert list(shell.json("purge", "--older-than", "0s", "--all")["deleted"].items()) == list(
        zip(TABLES, [0, 0, 0, 1, 0, 0, 2], strict=True)
    )


def test_what_goes_has_to_be_said(shell: Shell) -> None:
    before = shell.json("status"), shell.json("ai-calls", "stats")
    for words in ((), ("--dry-run",), ("--only", "runs", "--all")):
        assert "--only" in shell("purge", "--older-than", "0s", *words, code=2).output
    shell("purge", "--older-than", "soon", "--all", code=2)
    shell("purge", "--older-than", "1d", "--only", "everything", code=2)
    after = shell.json("status"), shell.json("ai-calls", "stats")
    assert [after[0][part] for part in ("runs", "queue", "outbox")] == [
        before[0][part] for part in ("runs", "queue", "outbox")
    ]
    assert after[1] == before[1]


def test_a_dry_run_deletes_nothing(shell: Shell) -> None:
    for _ in range(2):
        would = shell.json("purge", "--older-than", "0s", "--all", "--dry-run")
        assert would["deleted"] == dict(zip(TABLES, [1, 1, 0, 1, 0, 0, 2], strict=True))
        assert would["or_more"] == []
    assert "Would be deleted" in shell("purge", "--older-than", "0s", "--all", "--dry-run").stdout


def test_a_dry_run_counts_runs_without_a_lock(shell: Shell) -> None:
    database = sqlite3.connect(shell.url.removeprefix("sqlite:///"), isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        assert shell.json("purge", "--older-than", "0s", "--only", "runs", "--dry-run")["deleted"] == {"runs": 1}
    finally:
        database.close()


def test_a_dry_run_ends_its_count_of_a_table_in_time(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def log() -> None:
        async with open_adapters(shell.url) as adapters:
            for _ in range(10):
                adapters.ai_call_logger.log_call(call())

    anyio.run(log)
    words = ("purge", "--older-than", "0s", "--only", "ai_calls", "--only", "jobs", "--batch", "5", "--dry-run")
    assert shell.json(*words) == {"dry_run": True, "deleted": {"jobs": 1, "ai_calls": 12}, "or_more": []}
    monkeypatch.setattr(dry_run, "SECONDS", 0)
    assert shell.json(*words) == {"dry_run": True, "deleted": {"jobs": 1, "ai_calls": 5}, "or_more": ["ai_calls"]}
    assert "5 or more" in shell(*words).stdout
    monkeypatch.setattr(dry_run, "MOST", 1)
    only = ("purge", "--older-than", "0s", "--only", "runs", "--dry-run")
    assert shell.json(*only)["or_more"] == ["runs"]
