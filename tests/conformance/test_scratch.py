"""Where the files of a run are, and that none is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import scratch
from tests.conformance.trials import session, spec_of


def test_a_directory_is_gone_when_the_session_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with session(spec_of()) as opened:
        opened.check("SL-LIST-01")
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_has_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / "workflow-conformance-dead"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    (abandoned / "database").touch()
    half_removed = tmp_path / "workflow-conformance-dying"
    half_removed.mkdir()
    (half_removed / "database").touch()
    with session(spec_of()) as opened, session(spec_of()) as second:
        opened.check("SL-LIST-01")
        second.check("SL-LIST-01")
        assert not abandoned.exists()
        assert not half_removed.exists()
        assert len(list(tmp_path.iterdir())) == 2, "a run that lives is left alone"


def test_directories_are_made_in_memory_unless_the_environment_names_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_IN_MEMORY", tmp_path)
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    assert scratch.base_directory() == tmp_path
    monkeypatch.setattr(scratch, "_ENOUGH", 2**62)
    assert scratch.base_directory() == Path("/tmp"), "no room"
    monkeypatch.setattr(scratch, "_ENOUGH", 0)
    monkeypatch.setattr(scratch, "_IN_MEMORY", tmp_path / "none")
    assert scratch.base_directory() == Path("/tmp"), "no such place"
    monkeypatch.setattr(scratch, "_IN_MEMORY", tmp_path)
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert scratch.base_directory() == Path("/tmp"), "asked for"
