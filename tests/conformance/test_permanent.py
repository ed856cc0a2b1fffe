"""The list of ids, and docs/contract.md, are what the registry says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import permanent
from conformance.clause import MUST
from conformance.context import Context
from conformance.contract import contract
from conformance.permanent import Ids, complaints, updated
from conformance.registry import Registry, clause, load

ROOT = Path(__file__).parents[2]


def registry_of(**texts: str) -> Registry:
    registry = Registry()
    for id, text in texts.items():

        @clause(id.replace("_", "-"), MUST, text=text, why="A reason.", hints=["A hint."], registry=registry)
        async def tries(ctx: Context[Any]) -> None:
            del ctx

        del tries
    return registry


def test_the_remembered_ids_are_those_of_the_registry() -> None:
    assert complaints(permanent.read(), load()) == [], "run `make contract`, and look at what it changes"


def test_the_contracts_page_is_current() -> None:
    page = ROOT / "docs" / "contract.md"
    assert page.read_text(encoding="utf-8") == contract(load()), "run `make contract`"


def test_whatever_changes_is_told() -> None:
    ids = Ids({"JQ-AA-01": "A rule.", "JQ-AA-02": "Another."}, {"JQ-AA-03": "An old one."})
    registry = registry_of(JQ_AA_01="A better rule.", JQ_AA_03="An old one.", JQ_AA_04="A new one.")
    assert complaints(ids, registry) == [
        "JQ-AA-01 said: 'A rule.', and says: 'A better rule.'",
        "JQ-AA-02 has disappeared",
        "JQ-AA-03 was retired and must not be used again",
        "JQ-AA-04 is new",
    ]


def test_a_clause_that_is_gone_is_retired_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    permanent.write(Ids({"JQ-AA-01": "A rule.", "JQ-AA-02": "Another."}, {}), path)
    permanent.write(updated(permanent.read(path), registry_of(JQ_AA_02="Another.")), path)
    assert permanent.read(path) == Ids({"JQ-AA-02": "Another."}, {"JQ-AA-01": "A rule."})
    with pytest.raises(ValueError, match="in use again: JQ-AA-01"):
        updated(permanent.read(path), registry_of(JQ_AA_01="A rule."))


def test_the_page_has_every_clause_under_its_port() -> None:
    text = contract(load())
    for each in load().clauses():
        assert f"**{each.id}** ({each.level}" in text
        assert text.index(f"## {each.port.title}\n") < text.index(f"**{each.id}** (")
