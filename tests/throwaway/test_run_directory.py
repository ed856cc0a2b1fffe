"""Run directories: made for oneself alone, and removed though others look at them meanwhile."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.throwaway import ThrowawayError, run_directory
from conformance.throwaway.run_directory import RunDirectory


def test_a_stranger_in_its_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_directory, "_base_directory", lambda: tmp_path)
    monkeypatch.setattr(run_directory.secrets, "token_hex", lambda _: "0123")
    (tmp_path / f"workflow-adapters-run-{os.geteuid()}-0123").mkdir()
    (tmp_path / f"workflow-adapters-run-{os.geteuid()}-0123").chmod(0o777)
    with pytest.raises(ThrowawayError, match="is no directory of this user's alone"):
        RunDirectory.join(None)


@pytest.fixture
def lone_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory that nobody else knows of."""
    monkeypatch.setattr(run_directory, "_base_directory", lambda: tmp_path)
    monkeypatch.setattr(run_directory, "temporary_directories", lambda: [tmp_path])
    return tmp_path


def test_a_sweep_is_not_in_the_way_of_a_removal(lone_base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory.join(None)
    (run.path / "data").mkdir()
    assert run.leave()
    found: list[RunDirectory] = []
    sweeping = False

    def swept(real: Callable[..., None]) -> Callable[..., None]:
        def remove(*args: Any, **kwargs: Any) -> None:
            nonlocal sweeping
            real(*args, **kwargs)
            if not sweeping:
                sweeping = True
                found.extend(RunDirectory.abandoned())
                sweeping = False

        return remove

    for name in ("unlink", "rmdir"):
        monkeypatch.setattr(os, name, swept(getattr(os, name)))
    run.remove()
    run.let_go()
    assert found == []
    assert list(lone_base.iterdir()) == []


@pytest.mark.parametrize("left", [["lock", "data"], ["lock"], []])
def test_what_a_killed_removal_has_left_is_swept(lone_base: Path, left: list[str]) -> None:
    killed = lone_base / f"workflow-adapters-run-{os.geteuid()}-0123.removed"
    killed.mkdir()
    for name in left:
        (killed / name).touch()
    for run in RunDirectory.abandoned():
        run.remove()
        run.let_go()
    assert list(lone_base.iterdir()) == []
