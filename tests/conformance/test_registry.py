"""The registry refuses what would make its clauses unreadable, unordered or impermanent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.clause import MUST, Evidence, Options, Port, Requires
from conformance.context import Context
from conformance.registry import Registry, clause, load


def register(registry: Registry, id: str, after: Sequence[str] = (), **changes: Any) -> None:
    given: dict[str, Any] = {"text": "A rule.", "why": "A reason.", "hints": ["A hint."], **changes}

    @clause(id, MUST, after=after, registry=registry, **given)
    async def tries(ctx: Context[Any]) -> None:
        del ctx

    del tries


def test_a_taken_id_is_refused() -> None:
    registry = Registry()
    register(registry, "JQ-DEQ-01")
    with pytest.raises(ValueError, match="JQ-DEQ-01 is taken"):
        register(registry, "JQ-DEQ-01")


@pytest.mark.parametrize("id", ["JQ-DEQ-1", "JQ-deq-01", "XX-DEQ-01", "JQ-DEQ", "JQ-DEQ-001", "JQ--01"])
def test_an_id_of_another_form_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="PORT-AREA-NN"):
        register(Registry(), id)


@pytest.mark.parametrize("changes", [{"text": "A rule"}, {"why": " A reason."}, {"hints": ["hint"]}, {"hints": []}])
def test_what_is_no_sentence_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="JQ-DEQ-01"):
        register(Registry(), "JQ-DEQ-01", **changes)


def test_prerequisites_come_first_and_else_the_order_of_registration_holds() -> None:
    registry = Registry()
    register(registry, "JQ-BB-01", after=["JQ-CC-01"])
    register(registry, "JQ-AA-01")
    register(registry, "JQ-CC-01")
    assert [each.id for each in registry.clauses()] == ["JQ-CC-01", "JQ-BB-01", "JQ-AA-01"]


def test_a_circle_is_refused_and_shown() -> None:
    registry = Registry()
    register(registry, "JQ-AA-01", after=["JQ-BB-01"])
    register(registry, "JQ-BB-01", after=["JQ-AA-01"])
    with pytest.raises(ValueError, match="JQ-AA-01 -> JQ-BB-01 -> JQ-AA-01"):
        registry.clauses()


def test_a_prerequisite_that_is_no_clause_is_refused() -> None:
    registry = Registry()
    register(registry, "JQ-AA-01", after=["JQ-BB-01"])
    with pytest.raises(ValueError, match="JQ-AA-01 is after JQ-BB-01"):
        registry.clauses()


def test_a_need_of_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="clocks"):
        Requires("clocks", "caller")


def test_the_real_clauses_are_in_order_and_each_port_has_some() -> None:
    registry = load()
    clauses = registry.clauses()
    seen: set[str] = set()
    for each in clauses:
        assert seen.issuperset(each.after), each.id
        seen.add(each.id)
    assert {each.port for each in clauses} == set(Port)


def test_prerequisites_need_no_more_than_the_clauses_after_them() -> None:
    registry = load()
    for each in registry.clauses():
        for id in each.after:
            assert set(registry.get(id).needs) <= set(each.needs), f"{each.id} is after {id}, which needs more"


def test_options_are_few_since_each_kind_of_them_is_a_store_kept_open() -> None:
    kinds: dict[Options, list[str]] = {}
    for each in load().clauses():
        kinds.setdefault(each.options, []).append(each.id)
    assert len(kinds) < 20


def test_what_the_documentation_says_of_evidence_and_durability_is_so() -> None:
    clauses = load().clauses()
    assert {clause.evidence for clause in clauses} == {Evidence.EXAMPLE}
    assert [clause.id for clause in clauses for need in clause.requirements if need.name == "durability"] == []
    said = " ".join((Path(__file__).parent.parent.parent / "docs" / "conformance.md").read_text().split())
    assert "`evidence` is `example` for all of them today" in said
    assert "no clause tries it yet" in said
