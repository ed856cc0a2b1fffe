"""The demo does its job on real files, and notices when it did not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples.document_pipeline.account import check
from examples.document_pipeline.journal import Journal
from workflow_adapters import CreateRunInput, Status, UpdateRunInput, open_adapters


def run_demo(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "examples.document_pipeline", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_demo_survives_a_killed_and_a_frozen_worker(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One two three. Four five six!\n")
    (tmp_path / "b.md").write_text("# Title\n\nSeven eight — nine.\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ü.txt").write_text("ten eleven\n")
    done = run_demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outcome=superseded" in done.stdout
    assert "attempt=2" in done.stdout
    assert "kept a finished step" in done.stdout
    assert "14 words" in done.stdout


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    done = run_demo(tmp_path)
    assert done.returncode == 2
    assert "name a folder that does" in done.stderr


@pytest.mark.asyncio
async def test_a_wrong_count_and_a_step_that_ran_twice_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one two")
    journal = Journal(tmp_path / "journal", "test")
    for _ in range(2):
        journal.note("step ran", stage="s", step="count")
    async with open_adapters("memory://") as adapters:
        run = CreateRunInput(id="r", workflow_id="w", workflow_name="w", workflow_type="t", input=None)
        await adapters.persistence.create_run(run)
        output = UpdateRunInput(status=Status.COMPLETED, output={"files": [{"file": "a.txt", "words": 3}]})
        await adapters.persistence.update_run("r", output)
        wrong = await check(adapters, "r", journal, [], {"a.txt": file})
    assert "a.txt: 3 words, not 2" in wrong
    assert "step count of stage s ran 2 times" in wrong
