"""tools/in-memory.sh: a directory for temporary files that goes with the command, and is in nobody's way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.throwaway.support import eventually

TOOL = Path(__file__).parents[1] / "tools/in-memory.sh"


def started(script: str, **environment: str) -> subprocess.Popen[str]:
    given = {name: value for name, value in os.environ.items() if name not in {"TMPDIR", "TEMP", "TMP"}}
    command = [str(TOOL), "sh", "-c", script]
    return subprocess.Popen(command, env={**given, **environment}, stdout=subprocess.PIPE, text=True)


def shown(script: str, **environment: str) -> tuple[str, int]:
    process = started(script, **environment)
    output, _ = process.communicate(timeout=30)
    return output.strip(), process.returncode


@pytest.fixture(scope="module")
def place() -> str:
    """The directory that a command was given."""
    directory, _ = shown("echo $TMPDIR")
    if not directory:
        pytest.skip("no room in memory here: temporary files stay where they are")
    return directory


def test_it_goes_with_the_command_whose_status_is_handed_on(place: str) -> None:
    directory, status = shown("touch $TMPDIR/file; echo $TMPDIR; exit 3")
    assert (Path(directory).parent, status) == (Path(place).parent, 3)
    assert eventually(lambda: not Path(directory).exists())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_reaches_the_command(place: str, number: signal.Signals) -> None:
    process = started("echo $TMPDIR; exec sleep 60")
    assert process.stdout is not None
    directory = Path(process.stdout.readline().strip())
    assert directory.parent == Path(place).parent
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == -number
    assert eventually(lambda: not directory.exists())


def test_what_was_abandoned_goes_and_what_is_in_use_stays(place: str) -> None:
    with tempfile.TemporaryDirectory(prefix=f"wa-tests.{os.getpid()}.", dir=Path(place).parent) as used:
        gone = subprocess.Popen(["true"])
        gone.wait()
        abandoned = Path(place).with_name(f"wa-tests.{gone.pid}.abc")
        abandoned.mkdir()
        try:
            shown("true")
            assert not abandoned.exists()
            assert Path(used).exists()
        finally:
            shutil.rmtree(abandoned, ignore_errors=True)


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP"])
def test_whoever_has_chosen_keeps_it(name: str, tmp_path: Path) -> None:
    assert shown(f"echo ${name} $TMPDIR", **{name: str(tmp_path)})[0].split()[0] == str(tmp_path)
    if name != "TMPDIR":
        assert shown("echo $TMPDIR", **{name: str(tmp_path)}) == ("", 0)
