"""Trials for tests of the harness: a session on the pocket clauses, or on one made for the test."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from conformance.backend import Spec
from conformance.choice import Choice
from conformance.clause import MUST, Options, Port
from conformance.outcome import Failure, Result
from conformance.registry import Registry, clause
from conformance.session import Session
from tests.conformance.pocket_clauses import REGISTRY
from tests.conformance.pocket_ledger import pocket
from workflow_adapters.ports.step_ledger import SupportsClearExcept

IDS = [each.id for each in REGISTRY.clauses()]


def spec_of(factory: Any = pocket, **options: Any) -> Spec:
    return Spec(**{"port": Port.STEP_LEDGER, "factory": factory, "capabilities": [SupportsClearExcept], **options})


@contextmanager
def session(spec: Spec, registry: Registry = REGISTRY, **choice: Any) -> Generator[Session]:
    opened = Session(spec, registry, Choice(**choice))
    try:
        yield opened
    finally:
        opened.close()


def judged(spec: Spec, registry: Registry = REGISTRY, **choice: Any) -> dict[str, Result]:
    with session(spec, registry, **choice) as opened:
        return {each.id: opened.check(each.id) for each in registry.clauses()}


def outcomes(results: Mapping[str, Result]) -> dict[str, str]:
    return {id: result.outcome.value for id, result in results.items()}


def failure_of(result: Result) -> Failure:
    assert result.failure is not None
    return result.failure


def registry_with(function: Any, options: Options | None = None) -> Registry:
    registry = Registry()
    given: dict[str, Any] = {} if options is None else {"options": options}
    clause("SL-ODD-01", MUST, text="A rule.", why="A reason.", hints=["A hint."], registry=registry, **given)(function)
    return registry
