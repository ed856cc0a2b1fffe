"""The command below a failure: typed as it stands, it shows the same failure again."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli import main
from conformance.outcome import Outcome
from conformance.reports.document import from_document, to_document
from conformance.targets import load_specs
from tests.conformance.report_samples import made
from tests.conformance.test_faces import NO_ASYNCIO, PYTEST, ROOT

TARGETS = "tests.conformance.cli_targets"
AGAIN = re.compile(r"^  Again: python (-m conformance replay .*)$", re.MULTILINE)


def test_it_has_all_that_the_run_was_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_POSTGRES_DSN", "")
    told = ["--declare", "SupportsClearExcept", "--time-scale", "2.5"]
    dsn = ["--dsn", "postgresql://me:secret@host/name"]
    chosen = ["--only", "SL-CLAIM-05", "--seed", "7", "--loop", "trio", "--plain"]
    assert main(["run", f"{TARGETS}:make_forgetful", "--port", "step-ledger", *told, *dsn, *chosen]) == 1
    output = capsys.readouterr().out
    again = AGAIN.findall(output)[0]
    expected = f'{TARGETS}:make_forgetful SL-CLAIM-05 --seed 7 --loop trio --time-scale 2.5 --dsn "$DSN"'
    assert again == f"-m conformance replay {expected.replace(' --time', ' --declare SupportsClearExcept --time')}"
    assert "secret" not in output
    assert main([*shlex.split(again)[2:], "--plain"]) == 1
    assert AGAIN.findall(capsys.readouterr().out) == [again]


def test_a_document_keeps_it_and_one_without_it_can_be_read() -> None:
    document = to_document([made(Outcome.FAIL, again=("--time-scale", "2"))])
    assert from_document(document)[0].again == ("--time-scale", "2")
    del document["reports"][0]["again"]
    del document["reports"][0]["left_out"]
    assert from_document(document)[0].again == ()


SAMPLE = """
from conformance import step_ledger_conformance
from tests_of_mine import FACTORY

TestMine = step_ledger_conformance(FACTORY)
"""


@pytest.mark.parametrize("packages", [False, True])
def test_under_pytest_it_works_for_a_file_in_a_directory_of_tests(tmp_path: Path, packages: bool) -> None:
    directory = tmp_path / "checks" / "unit"
    directory.mkdir(parents=True)
    if packages:
        (directory / "__init__.py").touch()
    (tmp_path / "tests_of_mine.py").write_text(
        "from tests.conformance.misbehaving import Forgetful, factory_of\nFACTORY = factory_of(Forgetful)\n"
    )
    (directory / "test_mine.py").write_text(SAMPLE)
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**given, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    code, output = run(*PYTEST, *NO_ASYNCIO, "checks/unit/test_mine.py", "-k", "SL_CLAIM_05")
    assert code == 1, output
    again = AGAIN.findall(output)[0]
    assert " checks/unit/test_mine.py:TestMine SL-CLAIM-05 " in again
    code, output = run(*shlex.split(again), "--plain")
    assert code == 1, output
    assert "FAIL SL-CLAIM-05 (MUST)" in output


def test_a_file_is_imported_under_the_name_of_its_package() -> None:
    (spec,) = load_specs("tests/conformance/cli_targets.py:one")
    assert spec is not None
    assert sys.modules["tests.conformance.cli_targets"].one.factory is spec.factory
