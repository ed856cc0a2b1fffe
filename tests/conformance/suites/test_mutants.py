"""Clauses of persistence are failed by a memory adapter with one plausible mistake: passing proves something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conformance.choice import Choice
from conformance.clause import Port
from conformance.outcome import Outcome, Result
from conformance.registry import load
from conformance.session import Session
from tests.conformance.backends import memory
from tests.conformance.suites.mutation import Mutant
from tests.conformance.suites.persistence_mutants import PERSISTENCE_MUTANTS
from tests.conformance.suites.racy import RACY

_SPECS = {spec.port: spec for spec in memory}


@contextmanager
def session(port: Port) -> Iterator[Session]:
    opened = Session(_SPECS[port], load(), Choice(seed=1))
    try:
        yield opened
    finally:
        opened.close()


def tried(clause_id: str) -> Result:
    with session(load().get(clause_id).port) as opened:
        return opened.check(clause_id)


@pytest.mark.parametrize("mutant", PERSISTENCE_MUTANTS, ids=[mutant.name for mutant in PERSISTENCE_MUTANTS])
def test_the_clause_sees_the_mistake(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.owner, mutant.function, mutant.mutated())
    result = tried(mutant.clause)
    assert result.outcome is Outcome.FAIL, result.reason
    assert result.failure is not None
    assert result.failure.trace is None, "it fails by an expectation, not by an accident"


@pytest.mark.parametrize("clause_id", RACY)
def test_the_clause_sees_the_race(clause_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*RACY[clause_id])
    result = tried(clause_id)
    assert result.outcome is Outcome.FAIL, result.reason
    assert result.failure is not None
    assert result.failure.trace is None, "it fails by an expectation, not by an accident"
