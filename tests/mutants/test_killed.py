"""Every mutant is killed by the clauses that it names, for the reasons that it gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.clause import Level
from conformance.registry import load
from tests.mutants.catalogue import BACKENDS, files_of, mutants_of, read
from tests.mutants.change import MOST_CHANGED_LINES, changed_sources, diff_of

MUTANTS = [mutant for backend in BACKENDS for mutant in mutants_of(backend)]
FILES = files_of("memory")


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_clauses_see_the_mistakes(path: Path) -> None:
    command = [sys.executable, "-m", "tests.mutants", path.parent.name, path.stem]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    count = len(list(read(path)))
    assert run.stdout.endswith(f"{count} of {count} mutants are killed as listed\n"), run.stdout + run.stderr


def test_a_mutant_is_one_small_change() -> None:
    for mutant in MUTANTS:
        assert 0 < len(diff_of(mutant)) <= MOST_CHANGED_LINES, mutant.key
        for file, source in changed_sources(mutant).items():
            compile(source, file, "exec", dont_inherit=True)


def test_a_mutant_names_clauses_that_bind() -> None:
    for mutant in MUTANTS:
        for killer in mutant.killers:
            assert load().get(killer.clause).level is Level.MUST, mutant.key
            assert len(killer.words) > 5, mutant.key
