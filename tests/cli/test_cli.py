"""Every verb of the command line, as a person types it, on SQLite."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.cli.support import Shell, runner
from tests.worked_examples.examples import call, event, job, run, stage
from workflow_adapters import open_adapters
from workflow_adapters.cli.app import app


def test_migrate_plans_runs_and_is_content_afterwards(empty: Shell) -> None:
    assert "CREATE TABLE workflow_runs" in empty("migrate", "--plan").stdout
    assert "run `workflow-adapters migrate`" in empty("check", code=1).stderr
    assert "the schema does not fit: table ai_calls, " in empty("status", code=1).stderr
    assert "current" in empty("migrate").stdout
    assert empty.json("migrate", "--plan") == {"planned": []}
    assert empty.json("check") == {"ok": True, "missing": [], "mend": None}


def test_check_names_what_is_missing(empty: Shell) -> None:
    answer = empty.json("check", code=1)
    assert "table job_queue" in answer["missing"]
    assert "migrate" in answer["mend"]
    assert "missing: table job_queue" in empty("check", code=1).stderr


def test_a_database_without_the_schema_is_one_line_on_stderr(empty: Shell) -> None:
    result = empty("status", code=1)
    assert result.stderr.count("\n") == 1
    assert "migrate" in result.stderr


def test_status(shell: Shell) -> None:
    status = shell.json("status")
    assert status["queue"]["by_status"]["PENDING"] == 2
    assert status["queue"]["by_status"]["FAILED"] == 1
    assert status["runs"]["COMPLETED"] == 1
    assert status["outbox"]["dead"] == 1
    shown = shell("status").stdout
    assert "dead letters" in shown
    assert "FAILED" in shown


def test_runs(shell: Shell) -> None:
    page = shell.json("runs", "list", "--limit", "1")
    assert [item["id"] for item in page["items"]] == ["r2"]
    second = shell.json("runs", "list", "--limit", "1", "--after", page["next"])
    assert [item["id"] for item in second["items"]] == ["r1"]
    assert [item["id"] for item in shell.json("runs", "list", "--status", "completed")["items"]] == ["r2"]
    assert [item["id"] for item in shell.json("runs", "list", "--workflow-id", "w")["items"]] == ["r1"]
    shown = shell.json("runs", "show", "r1")
    assert shown["run"]["input"] == {"n": 1}
    assert [found["stage_id"] for found in shown["stages"]] == ["s1"]
    assert len(shown["jobs"]) == 3
    assert "does not exist" in shell("runs", "show", "nope", code=1).stderr
    assert "boom [bold]" in shell("runs", "show", "r1").stdout, "markup in an error text is shown as it is"


def test_jobs(shell: Shell) -> None:
    [failed] = shell.json("jobs", "list", "--status", "FAILED")["items"]
    assert shell.json("jobs", "show", failed["id"])["last_error"] == "boom [bold]"
    assert shell.json("jobs", "requeue", failed["id"])["requeued"] is True
    assert "is PENDING, not FAILED or CANCELLED" in shell("jobs", "requeue", failed["id"], code=1).stderr
    assert shell.json("jobs", "cancel", failed["id"])["status"] == "CANCELLED"
    assert "does not exist" in shell("jobs", "cancel", "nope", code=1).stderr
    assert "does not exist" in shell("jobs", "show", "nope", code=1).stderr
    assert len(shell.json("jobs", "list", "--run-id", "r1")["items"]) == 3


def test_outbox(shell: Shell) -> None:
    [dead] = shell.json("outbox", "dlq", "list")["items"]
    assert dead["sequence"] == 1
    assert shell.json("outbox", "dlq", "replay") == {"replayed": 1}
    assert shell.json("status")["outbox"] == {**shell.json("status")["outbox"], "dead": 0, "unpublished": 2}
    assert shell.json("outbox", "release", dead["id"]) == {"released": [dead["id"]]}


def test_ai_calls(shell: Shell) -> None:
    stats = shell.json("ai-calls", "stats", "docs/")
    assert (stats["total_calls"], stats["total_cost"]) == (2, 0.3)
    assert "0.3" in shell("ai-calls", "stats").stdout


ODD = "[/x] [red]:warning:"


def test_what_looks_like_markup_is_shown_as_it_is(empty: Shell) -> None:
    async def fill() -> None:
        async with open_adapters(empty.url) as adapters:
            await adapters.migrate()
            await adapters.persistence.create_run(run(ODD, workflow_id=ODD))
            await adapters.persistence.create_stage(stage(ODD, ODD))
            await adapters.job_queue.enqueue_parallel([job(ODD, workflow_run_id=ODD)])
            await adapters.persistence.append_outbox_events([event(ODD)])
            [dead] = await adapters.persistence.get_unpublished_outbox_events()
            await adapters.persistence.move_outbox_event_to_dlq(dead.id)
            adapters.ai_call_logger.log_call(call(ODD, model_key=ODD))

    anyio.run(fill)
    [made] = empty.json("jobs", "list", "--run-id", ODD)["items"]
    for words in (
        ("runs", "list"),
        ("runs", "show", ODD),
        ("jobs", "list", "--run-id", ODD),
        ("jobs", "show", made["id"]),
        ("outbox", "dlq", "list"),
        ("ai-calls", "stats", ODD),
    ):
        assert ODD in empty(*words).stdout, words
    assert f"Calls of topics {ODD}…" in empty("ai-calls", "stats", ODD).stdout
    for words in (("runs", "show", "[/x]"), ("jobs", "show", "[/x]"), ("jobs", "cancel", "[/x]")):
        assert "'[/x]' does not exist" in empty(*words, code=1).stderr
    for words in (("purge", "--older-than", "[/x]"), ("jobs", "list", "--status", "[/x]"), ("jobs", "[/x]")):
        assert "'[/x]'" in empty(*words, code=2).output
    empty("outbox", "release", "[/x]")


@pytest.mark.parametrize("verb", ["cancel", "requeue"])
def test_an_id_that_looks_like_markup_is_shown_as_it_is(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Adapters of ours make ids without brackets; others may not.
    async def changed(self: object, job_id: str) -> bool:
        return True

    monkeypatch.setattr(f"workflow_adapters.memory.operations.MemoryOperations.{verb}_job", changed)
    assert "job [/x] is " in Shell("memory://")("jobs", verb, "[/x]").stdout


def test_no_password_is_ever_shown(tmp_path: Path) -> None:
    for url in ("postgresql://u:s3cret@127.0.0.1:1/db", "mysql://u:s3cret@h/db", "u:s3cret"):
        for words in (("status",), ("migrate",), ("runs", "list")):
            result = runner.invoke(app, [*words, "--url", url])
            assert result.exit_code in (1, 2)
            assert "s3cret" not in result.output
            assert result.stderr


def test_no_url_is_said_plainly() -> None:
    result = runner.invoke(app, ["status"], env={"WORKFLOW_ADAPTERS_URL": ""})
    assert result.exit_code == 2
    assert "give --url or set WORKFLOW_ADAPTERS_URL" in result.stderr


@pytest.mark.parametrize("words", [[], ["runs"], ["jobs"], ["outbox"], ["outbox", "dlq"], ["ai-calls"]])
def test_help(words: list[str]) -> None:
    result = runner.invoke(app, [*words, "--help"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "Usage" in result.output
