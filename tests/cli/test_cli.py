"""Every verb of the command line, as a person types it, on SQLite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner, Result

from tests.worked_examples.examples import call, event, job, run, stage
from workflow_adapters import Adapters, Status, UpdateRunInput, open_adapters
from workflow_adapters.cli.app import app

runner = CliRunner()


class Shell:
    """Types commands against one database."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *words: str, code: int = 0) -> Result:
        result = runner.invoke(app, list(words), env={"WORKFLOW_ADAPTERS_URL": self.url, "COLUMNS": "200"})
        assert result.exit_code == code, result.output
        return result

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code).stdout)


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    return Shell(f"sqlite:///{tmp_path}/cli.db")


@pytest.fixture
def shell(empty: Shell) -> Shell:
    """A database with two runs, three jobs, a dead letter and a model call."""

    async def fill() -> None:
        async with open_adapters(empty.url) as adapters:
            await adapters.migrate()
            await _fill(adapters)

    anyio.run(fill)
    return empty


async def _fill(adapters: Adapters) -> None:
    await adapters.persistence.create_run(run("r1"))
    await adapters.persistence.create_stage(stage("r1", "s1"))
    await adapters.persistence.create_run(run("r2", workflow_id="other"))
    await adapters.persistence.update_run("r2", UpdateRunInput(status=Status.COMPLETED))
    await adapters.job_queue.enqueue_parallel([job("s1", priority=9), job("s2"), job("s3")])
    claimed = await adapters.job_queue.dequeue()
    assert claimed is not None
    await adapters.job_queue.fail(claimed.job_id, "boom [bold]", fence=claimed.fence)
    await adapters.persistence.append_outbox_events([event("r1"), event("r1")])
    dead, _ = await adapters.persistence.get_unpublished_outbox_events()
    await adapters.persistence.move_outbox_event_to_dlq(dead.id)
    adapters.ai_call_logger.log_call(call("docs/a", cost=0.1))
    adapters.ai_call_logger.log_call(call("docs/b", cost=0.2))


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


def test_purge(shell: Shell) -> None:
    would = shell.json("purge", "--older-than", "0s", "--dry-run")
    assert would["deleted"]["runs"] == 1
    assert shell.json("status")["runs"]["COMPLETED"] == 1, "a dry run deletes nothing"
    done = shell.json("purge", "--older-than", "0s", "--only", "runs", "--only", "jobs")
    assert done == {"dry_run": False, "deleted": {"runs": 1, "jobs": 1}}
    assert shell.json("status")["runs"]["COMPLETED"] == 0
    assert "ai_calls" in shell("purge", "--older-than", "30d").stdout
    shell("purge", "--older-than", "soon", code=2)
    shell("purge", "--older-than", "1d", "--only", "everything", code=2)


def test_ai_calls(shell: Shell) -> None:
    stats = shell.json("ai-calls", "stats", "docs/")
    assert (stats["total_calls"], stats["total_cost"]) == (2, 0.3)
    assert "0.3" in shell("ai-calls", "stats").stdout


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
