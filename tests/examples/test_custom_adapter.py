"""The Redis queue of the examples, held to the contract in each way that there is."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from redis import Redis

from conformance import Outcome, job_queue_conformance, run
from examples.custom_adapter.testing import CAPABILITIES, PARAMETERS, make_queue, queue
from workflow_adapters import JobQueue

pytestmark = pytest.mark.usefixtures("redis_url")

ROOT: Final = Path(__file__).parents[2]
TARGET: Final = "examples.custom_adapter.testing"
NOT_THERE: Final = {"does not declare SupportsFairness", "does not declare SupportsWaiting"}

TestRedisQueue = job_queue_conformance(make_queue, capabilities=CAPABILITIES, parameters=PARAMETERS)


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "conformance", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def results_of(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Outcome and reason of each clause."""
    for result in report["results"]:
        yield result["outcome"], result["reason"]


def test_the_bare_factory_on_the_command_line_misses_nothing_but_what_is_not_declared(tmp_path: Path) -> None:
    declared = [word for kind in CAPABILITIES for word in ("--declare", kind.__name__)]
    done = conformance("run", f"{TARGET}:make_queue", *declared, "--json", str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    [report] = json.loads((tmp_path / "report.json").read_text())["reports"]
    results = set(results_of(report))
    assert results == {("PASS", None), *(("NOT_APPLICABLE", reason) for reason in NOT_THERE)}


def test_without_declarations_the_command_line_says_what_it_could_not_try() -> None:
    done = conformance("run", f"{TARGET}:make_queue", "--only", "JQ-DECLARE-*")
    assert done.returncode == 3, done.stdout + done.stderr
    for kind in CAPABILITIES:
        assert kind.__name__ in done.stdout


def test_both_clocks_on_the_command_line(redis_url: str, tmp_path: Path) -> None:
    done = conformance("run", f"{TARGET}:specs", "--dsn", redis_url, "--json", str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    _, on_redis_time = json.loads((tmp_path / "report.json").read_text())["reports"]
    reasons = {reason for outcome, reason in results_of(on_redis_time) if outcome != "PASS"}
    assert all(reason in NOT_THERE or "clock" in reason for reason in reasons)
    with Redis.from_url(redis_url) as left:
        assert left.keys("conformance_*") == []


@pytest.mark.asyncio
async def test_from_a_program() -> None:
    report = await run(queue)
    assert report.exit_code == 0
    assert report.verdict == "Conformant."
    assert set(report.counts) == {Outcome.PASS, Outcome.NOT_APPLICABLE}


def test_the_adapter_knows_the_contract_alone() -> None:
    """What a package of somebody else's could import: the public names, and what checks arguments."""
    allowed = {"workflow_adapters", "workflow_adapters.arguments", "workflow_adapters.inputs.job_queue", "conformance"}
    own = "examples.custom_adapter"
    for path in (ROOT / "examples/custom_adapter").glob("*.py"):
        imported = {
            name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
        }
        ours = {name for name in imported if name.startswith(("workflow_adapters", "conformance", "tests", "examples"))}
        assert {name for name in ours if not name.startswith(own)} <= allowed, path.name
        assert "conformance" not in ours or path.name == "testing.py"


@pytest.mark.asyncio
async def test_the_snippet_of_the_readme(redis_url: str) -> None:
    [source] = re.findall(r"```python\n(.*?)```", (ROOT / "examples/custom_adapter/README.md").read_text(), re.DOTALL)
    code = compile(
        source.replace("redis://localhost:6379/0", redis_url), "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    names: dict[str, Any] = {}
    await eval(code, names)
    assert isinstance(names["queue"], JobQueue)
