"""Mutants are killed by the clauses that they name, for the reasons that they give.

Here that is tried on a sample; `make mutants` tries whatever has changed, and test_matrix holds all to what it saw.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.clause import Level
from conformance.registry import load
from tests.mutants.batch import complaint
from tests.mutants.catalogue import BACKENDS, mutants_of, read
from tests.mutants.change import MOST_CHANGED_LINES, changed_sources, diff_of
from tests.mutants.trial import Verdict

MUTANTS = [mutant for backend in BACKENDS for mutant in mutants_of(backend)]
EXAMPLE = """
== never-checked [race]
SL-CLAIM-01: created is False
@ tests/mutants/batch.py main
- given = parser.parse_args(arguments)
+ given = parser.parse_args([])
"""


@pytest.mark.parametrize(("backend", "every"), [("memory", 24), ("sqlite", 28)])
def test_a_sample_is_killed(backend: str, every: int) -> None:
    names = [mutant.name for mutant in mutants_of(backend)[::every]]
    command = [sys.executable, "-m", "tests.mutants", backend, *names]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    told = f"{len(names)} of {len(names)} mutants are killed as listed\n"
    assert (run.stdout, run.returncode) == (told, 0), run.stderr


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


@pytest.mark.parametrize(
    ("outcome", "said", "accident", "wrong"),
    [
        ("FAIL", "created is False, but must be True.", False, ""),
        ("FAIL", "created is None", False, "SL-CLAIM-01 says 'created is None', not 'created is False'"),
        ("FAIL", "created is False", True, "SL-CLAIM-01 fails by an accident: created is False"),
        ("PASS", "", False, "SL-CLAIM-01 is PASS"),
        ("NOT_TESTED", "it builds on another", False, "SL-CLAIM-01 is not tested; it builds on another"),
    ],
)
def test_only_the_words_that_are_named_kill(
    outcome: str, said: str, accident: bool, wrong: str, tmp_path: Path
) -> None:
    path = tmp_path / "area.mutants"
    path.write_text(EXAMPLE)
    (mutant,) = read(path)
    verdict = Verdict(clause="SL-CLAIM-01", outcome=outcome, said=said, accident=accident)
    assert mutant.is_race
    assert complaint(mutant, [verdict]) == wrong


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("batch.py main", "batch.py other", "has no"),
        ("parse_args(arguments)", "parse_args(words)", "0 times, not once"),
        ("SL-CLAIM-01: created is False", "", "no clause is named"),
    ],
)
def test_a_mutant_that_does_not_fit_is_refused(old: str, new: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "area.mutants"
    path.write_text(EXAMPLE.replace(old, new))
    with pytest.raises(ValueError, match=told):
        [changed_sources(mutant) for mutant in read(path)]
