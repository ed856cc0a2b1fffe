"""The command line: targets, exit codes, files, and that it needs nothing that is not installed with the base."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli import main
from conformance.explaining import explained
from conformance.registry import load
from conformance.runner import UsageError
from conformance.targets import load_specs
from tests import base_only

ROOT = Path(__file__).parents[2]
TARGETS = "tests.conformance.cli_targets"
DECLARED = "SL-DECLARE-01"


def test_targets_of_every_kind() -> None:
    (factory,) = load_specs(f"{TARGETS}:make_ledger", declared=["SupportsClearExcept"])
    assert (factory.port.title, factory.location) == ("StepLedger", f"{TARGETS}:make_ledger")
    assert {kind.__name__ for kind in factory.promised} == {"SupportsClearExcept"}
    (one,) = load_specs(f"{TARGETS}:one")
    assert (one.name, one.location) == ("pocket", f"{TARGETS}:one")
    (case,) = load_specs(f"{TARGETS}:Case")
    assert case.location == f"{TARGETS}:Case"
    assert [spec.location for spec in load_specs(f"{TARGETS}:several")] == [
        f"{TARGETS}:several#pocket",
        f"{TARGETS}:several#forgetful",
    ]
    (chosen,) = load_specs(f"{TARGETS}:several#forgetful")
    assert chosen.name == "forgetful"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("make_ledger", "write package.module:name"),
        ("no.such.module:make", "there is no module 'no.such.module' here"),
        (f"{TARGETS}:absent", "has no absent"),
        (f"{TARGETS}:nothing", "is neither a factory nor a Spec"),
        (f"{TARGETS}:several#absent", "it has pocket (StepLedger), forgetful (StepLedger)"),
        (f"{TARGETS}:ambiguous", "looks like several ports at once; say which with --port"),
        (f"{TARGETS}:portless", "looks like no port; say which with --port"),
        (f"{TARGETS}:broken", "could not be opened to find out its port: the factory raised OSError: no such host"),
    ],
)
def test_a_target_that_names_nothing_says_what_would(
    target: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", target, "--plain"]) == 2
    assert said in capsys.readouterr().err


def test_a_capability_of_another_port_is_refused() -> None:
    with pytest.raises(UsageError, match="SupportsDefer is no capability of StepLedger"):
        load_specs(f"{TARGETS}:make_ledger", declared=["SupportsDefer"])
    with pytest.raises(UsageError, match="leave --declare out"):
        load_specs(f"{TARGETS}:one", declared=["SupportsClearExcept"])


def test_run_chooses_clauses_by_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{TARGETS}:one", "--only", "SL-DECLARE-*", "--plain", "--seed", "7"]) == 0
    out = capsys.readouterr().out
    assert "StepLedger of pocket: 2 clauses" in out
    assert "2 passed in" in out
    assert "(seed 7)" in out
    assert "The chosen clauses are met." in out


def test_run_of_a_pattern_that_matches_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{TARGETS}:one", "--only", "SL-NONE-*"]) == 2
    assert "no clause of StepLedger matches 'SL-NONE-*'" in capsys.readouterr().err


def test_methods_that_are_there_and_not_declared_make_a_run_incomplete(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{TARGETS}:several#forgetful", "--only", "SL-DECLARE-*", "--plain"]) == 3
    out = capsys.readouterr().out
    assert "The adapter has the methods of SupportsClearExcept; neither `capabilities` nor --declare says so." in out


def test_run_writes_every_report_and_matrix_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "markdown", "html")}
    files = [argument for kind, path in paths.items() for argument in (f"--{kind}", str(path))]
    assert main(["run", f"{TARGETS}:several", "--only", "SL-DECLARE-*", "--plain", *files]) == 3
    assert len(json.loads(paths["json"].read_text())["reports"]) == 2
    assert all(path.stat().st_size for path in paths.values())
    again = tmp_path / "again.html"
    assert main(["matrix", str(paths["json"]), "--plain", "--html", str(again)]) == 3
    assert again.read_text() == paths["html"].read_text()
    assert "StepLedger" in capsys.readouterr().out


def test_a_report_without_a_place_is_refused_before_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{TARGETS}:broken", "--json", str(tmp_path / "absent" / "report.json")]) == 2
    assert f"there is no directory {tmp_path / 'absent'}" in capsys.readouterr().err


def test_matrix_of_what_is_no_report_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert main(["matrix", str(other)]) == 2
    assert "is no conformance report" in capsys.readouterr().err


def test_replay_tries_one_clause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", f"{TARGETS}:several#pocket", DECLARED, "--seed", "7", "--plain"]) == 0
    assert "1 passed" in capsys.readouterr().out
    assert main(["replay", f"{TARGETS}:several", DECLARED, "--plain"]) == 2
    assert "has 2 adapters of StepLedger; name one" in capsys.readouterr().err


def test_replay_takes_the_port_from_the_clause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", f"{TARGETS}:portless", DECLARED.lower(), "--plain"]) == 1
    assert f"Again: python -m conformance replay {TARGETS}:portless {DECLARED}" in capsys.readouterr().out


def test_no_command_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "{run,replay,list,explain,matrix,docs}" in capsys.readouterr().err


def test_list_and_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--port", "step-ledger"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("SL-") for line in lines)
    assert any(line.startswith(f"{DECLARED}  MUST    The adapter has every method") for line in lines)
    assert main(["explain", DECLARED]) == 0
    text = capsys.readouterr().out
    for part in ("SL-DECLARE-01 (MUST), StepLedger", "Why it matters:", "If it fails, check", "Time limit: 5 s"):
        assert part in text
    assert "    async def has_what_it_declares(ctx: Context[Any]) -> None:\n        missing = ctx.missing" in text
    assert main(["explain", "SL-NONE-01"]) == 2
    assert "there is no clause 'SL-NONE-01'" in capsys.readouterr().err


def test_every_clause_can_be_explained() -> None:
    for clause in load().clauses():
        assert clause.why in explained(clause)


def test_a_clause_that_a_rule_made_is_explained_with_what_it_was_made_with() -> None:
    by_rule = explained(load().get("WP-NULL-16"))
    assert "# field = _Field(number=16, name='config'" in by_rule
    assert "# start = _stage_patch" in by_rule
    assert "async def _stage_patch(" in by_rule
    assert "async def _try(" in by_rule
    column = explained(load().get("JQ-JSON-06"))
    assert "# self.columns = [JsonColumn(name='payload', store=_store_payload" in column
    assert "async def _store_payload(" in column
    assert "# " not in explained(load().get("JQ-FENCE-02")), "one that stands for itself"


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_runs_where_only_the_base_is_installed() -> None:
    program = "from conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    result = base_only.run(program, "run", f"{TARGETS}:one", "--only", "SL-DECLARE-*")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "The chosen clauses are met." in result.stdout


def test_an_interrupt_ends_the_run_and_removes_what_was_made(tmp_path: Path) -> None:
    program = f"""
import os, signal, sys, tempfile, threading
tempfile.tempdir = {str(tmp_path)!r}
from conformance.cli import main
import tests.conformance.misbehaving as misbehaving

async def claim(self, step):
    os.kill(os.getpid(), signal.SIGINT)
    await misbehaving.anyio.sleep_forever()

misbehaving.PocketLedger.claim = claim
misbehaving.PocketLedger.list = claim
from tests.conformance import trials
from conformance.runner import run_sync
from tests.conformance.pocket_clauses import REGISTRY
try:
    run_sync(trials.spec_of(), registry=REGISTRY)
except KeyboardInterrupt:
    print("interrupted", os.listdir(tempfile.tempdir))
"""
    result = run(program)
    assert result.stdout == "interrupted []\n", result.stderr
