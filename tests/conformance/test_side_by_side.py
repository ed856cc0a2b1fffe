"""Adapters that are tried at the same time: the same verdicts, shown in the same order, and nothing left behind."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from conformance.choice import Choice
from conformance.registry import load
from conformance.shares import Share, Shares
from conformance.side_by_side import WorkerLostError, how_many, side_by_side
from conformance.throwaway.processes import processes_on
from conformance.visiting import visit
from tests.conformance import cli_targets
from tests.conformance.cli_targets import COUNTED

ROOT = Path(__file__).parents[2]
TARGETS = "tests.conformance.cli_targets"
MEMORY = "tests.conformance.backends:memory"
COMMAND = [sys.executable, "-W", "error", "-m", "conformance", "run", "--plain"]


def started(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    process = started(tmp_path, *arguments)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def verdicts(path: Path) -> list[tuple[str, list[tuple[str, str, str | None]]]]:
    document: dict[str, Any] = json.loads(path.read_text())
    return [
        (
            report["adapter"]["port"],
            [(each["clause_id"], each["outcome"], each["reason"]) for each in report["results"]],
        )
        for report in document["reports"]
    ]


def test_the_verdicts_and_their_order_are_the_same(tmp_path: Path) -> None:
    documents = [tmp_path / "one.json", tmp_path / "two.json"]
    outputs: list[str] = []
    for jobs, document in enumerate(documents, 1):
        arguments = (MEMORY, "--only", "*-DECLARE-*", "--seed", "7", "--jobs", str(jobs), "--json", str(document))
        code, output, errors = said(tmp_path, *arguments)
        assert (code, errors) == (0, "")
        outputs.append(output)
    assert verdicts(documents[0]) == verdicts(documents[1])
    heads = [[line for line in output.splitlines() if " of memory: " in line] for output in outputs]
    assert heads[0] == heads[1]
    assert len(heads[0]) == 4


def test_one_adapter_tried_by_several_processes_gets_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, str, str]] = []
    openings: list[int] = []
    processes: list[int] = []
    documents = [tmp_path / "one.json", tmp_path / "three.json"]
    for jobs, document in zip((1, 3), documents, strict=True):
        counted = tmp_path / f"{jobs}"
        counted.mkdir()
        monkeypatch.setenv(COUNTED, str(counted))
        arguments = ("--seed", "7", "--jobs", str(jobs), "--json", str(document))
        code, output, errors = said(tmp_path, f"{TARGETS}:alone", *arguments)
        told.append((code, re.sub(r"in [\d.]+ s", "in … s", output), errors))
        openings.append(len(list(counted.iterdir())))
        processes.append(len({file.name.partition("-")[0] for file in counted.iterdir()}))
    assert told[0] == told[1]
    assert (told[0][0], told[0][2]) == (1, "")
    assert verdicts(documents[0]) == verdicts(documents[1])
    outcomes = {outcome for _, results in verdicts(documents[0]) for _, outcome, _ in results}
    assert outcomes >= {"PASS", "FAIL", "NOT_TESTED"}
    # No clause is tried twice, and not all of them by one process.
    assert openings[0] == openings[1]
    assert processes[0] == 1
    assert processes[1] > 1


@pytest.mark.parametrize(
    ("allowed", "threads", "clauses", "jobs", "expected"),
    [(True, 1, 16, 2, 2), (True, 1, 16, 5, 2), (True, 1, 8, 2, 1), (False, 1, 16, 2, 1), (True, 2, 16, 2, 1)],
)
def test_how_many_processes(
    allowed: bool, threads: int, clauses: int, jobs: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.active_count", lambda: threads)
    spec = replace(cli_targets.alone, side_by_side=allowed)
    assert how_many([spec], Shares([load().clauses(spec.port)[:clauses]]), jobs) == expected


def conversation(target: Callable[..., object]) -> Any:
    """What a forked process says that was handed a share."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=target, args=(there, [here], [cli_targets.alone], [None]))
    process.start()
    there.close()
    here.send(Share(0, ["SL-DECLARE-01"], []))
    try:
        return here.recv()
    finally:
        here.close()
        process.join(30)


def test_what_goes_wrong_in_a_process_is_told() -> None:
    # A choice of None is what no session can be made of.
    answer = conversation(visit)
    assert answer.startswith("the harness went wrong\nTraceback")
    assert "AttributeError: 'NoneType'" in answer


def test_what_can_not_be_cleaned_up_is_told_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stop_server() -> None:
        raise OSError("the server does not stop")

    monkeypatch.setattr("conformance.servers.stop_server", stop_server)
    conversation(visit)
    assert "OSError: the server does not stop" in capfd.readouterr().err


@pytest.mark.parametrize("last_words", [b"", b"\x00\x00\x10\x00half a message"])
def test_a_process_that_ends_at_once_or_in_the_midst_of_a_message_is_told_of(
    last_words: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(line: Connection, *_: object) -> None:
        os.write(line.fileno(), last_words)
        os._exit(9)

    monkeypatch.setattr("conformance.side_by_side.visit", gone)
    shares = Shares([load().clauses(cli_targets.alone.port)])
    with side_by_side([cli_targets.alone], Choice(), shares, 2) as arriving:
        time.sleep(0.2)
        with pytest.raises(WorkerLostError, match=r"(alone|no adapter yet): its process has ended before its time"):
            list(arriving)


def test_a_process_whose_child_outlives_it_is_told_of(tmp_path: Path) -> None:
    process = started(tmp_path, f"{TARGETS}:forking", "--jobs", "2")
    try:
        # The orphan holds all that its parent had open: the line, and the lock of its directory.
        assert process.wait(20) == 4
    finally:
        subprocess.run(["pkill", "-f", f"{TARGETS}:forking"], check=False)
        process.communicate(timeout=10)
    assert said(tmp_path, f"{TARGETS}:one", "--only", "SL-DECLARE-01")[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_is_left_behind_holds_nothing_up(tmp_path: Path) -> None:
    began = time.monotonic()
    document = tmp_path / "report.json"
    process = started(
        tmp_path,
        f"{TARGETS}:spawning",
        "--only",
        "SL-DECLARE-*",
        "--only",
        "SL-CLAIM-*",
        "--jobs",
        "2",
        "--json",
        str(document),
    )
    try:
        assert process.wait(20) == 1
        assert document.exists()
        assert time.monotonic() - began < 15
    finally:
        subprocess.run(["pkill", "-f", f"{TARGETS}:spawning"], check=False)
        process.communicate(timeout=10)


@pytest.mark.parametrize("jobs", [1, 2])
def test_half_a_character_is_told_and_written(tmp_path: Path, jobs: int) -> None:
    files = {f"--{kind}": tmp_path / f"report.{kind}" for kind in ("json", "html", "markdown", "junit")}
    places = [word for option, file in files.items() for word in (option, str(file))]
    code, output, errors = said(tmp_path, f"{TARGETS}:half_said", "--only", "SL-CLAIM-*", "--jobs", str(jobs), *places)
    assert (code, errors) == (1, "")
    assert "half a character: \\udc80" in output
    assert any("\\udc80" in str(each) for each in json.loads(files["--json"].read_text())["reports"][0]["results"])
    assert all(file.stat().st_size for file in files.values())


@pytest.mark.parametrize("jobs", ["0", "-1", "x"])
def test_a_number_of_jobs_that_is_none_is_refused(tmp_path: Path, jobs: str) -> None:
    code, _, errors = said(tmp_path, f"{TARGETS}:alone", f"--jobs={jobs}")
    assert code == 2
    assert f"must be a number from 1 on, not '{jobs}'" in errors


def test_a_report_can_not_take_the_place_of_a_directory(tmp_path: Path) -> None:
    code, _, errors = said(tmp_path, f"{TARGETS}:alone", "--json", str(tmp_path))
    assert (code, errors) == (2, f"conformance: {tmp_path} can not be written: it is a directory\n")


def test_jobs_that_can_not_be_are_told_of(tmp_path: Path) -> None:
    code, _, errors = said(tmp_path, f"{TARGETS}:one", "--only", "SL-DECLARE-01", "--jobs", "2")
    assert (code, errors) == (0, "conformance: one process, since not every adapter says side_by_side=True\n")


def test_a_process_that_is_gone_is_a_harness_error(tmp_path: Path) -> None:
    code, _, errors = said(tmp_path, f"{TARGETS}:mortal", "--jobs", "2")
    assert code == 4
    assert errors == "conformance: dying: its process has ended before its time\n"


def children_of(process: subprocess.Popen[str]) -> list[int]:
    return [int(id) for id in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within a time that an idle machine never needs."""
    deadline = time.monotonic() + 60
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


def has(directory: Path, count: int) -> Callable[[], bool]:
    return lambda: len(list(directory.iterdir())) == count


def runs(process: int) -> bool:
    """Whether a process is there; an ended one whose new parent has not taken notice is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(tmp_path: Path, jobs: int, number: signal.Signals) -> None:
    process = started(tmp_path, f"{TARGETS}:hanging", "--jobs", str(jobs), "--time-scale", "20")
    assert eventually(lambda: len(list(tmp_path.glob("*/*/hangs"))) == jobs)
    children = children_of(process)
    assert len(children) == (0 if jobs == 1 else jobs)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    if number is signal.SIGINT:
        assert process.returncode == 130
        assert errors == "conformance: interrupted; everything it made is removed\n"
        assert list(tmp_path.iterdir()) == []
    else:
        # Whoever was killed itself has left its directory for the next run.
        assert eventually(has(tmp_path, 1 if jobs == 1 else 0))
        assert said(tmp_path, f"{TARGETS}:one", "--only", "SL-DECLARE-01")[0] == 0
        assert list(tmp_path.iterdir()) == []
    assert eventually(lambda: not any(map(runs, children)))


def test_one_adapter_in_two_processes_leaves_nothing_after_a_signal(tmp_path: Path) -> None:
    process = started(tmp_path, f"{TARGETS}:hanging#first", "--jobs", "2", "--time-scale", "20")
    assert eventually(lambda: len(list(tmp_path.glob("*/*/hangs"))) == 1)
    children = children_of(process)
    assert len(children) == 2
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "conformance: interrupted; everything it made is removed\n")
    assert list(tmp_path.iterdir()) == []
    assert not any(map(runs, children))


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that a server under another account may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        Path(path).chmod(0o711)
        yield Path(path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_shared_server_goes_with_the_last_process(
    open_directory: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFORMANCE_POSTGRES_RUNG", "embedded-16")
    process = started(open_directory, "tests.conformance.backends:postgres", "--jobs", "2")
    assert eventually(lambda: any(open_directory.glob("workflow-adapters-run-*/server.json")))
    [run] = open_directory.glob("workflow-adapters-run-*")
    assert processes_on(run / "data")
    # Both are on it: each has a directory of its own beside the server's.
    assert eventually(lambda: len(list(open_directory.glob("workflow-conformance-*"))) == 2)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert eventually(lambda: not any(open_directory.iterdir()))
    assert processes_on(run / "data") == []
