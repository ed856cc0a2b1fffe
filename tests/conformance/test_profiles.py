"""What a quick run leaves for a full one."""

from __future__ import annotations

from conformance.choice import Choice, Profile
from conformance.profiles import EVERYWHERE, LONG, ROUNDS, VOLUME
from conformance.registry import load
from conformance.runner import choose, run_sync
from tests.conformance.backends import memory


def chosen(profile: Profile) -> set[str]:
    return {clause.id for spec in memory for clause in choose(spec, Choice(profile=profile), load())}


def test_a_full_run_tries_everything_and_a_quick_one_all_but_what_is_long() -> None:
    everything = {clause.id for clause in load().clauses()}
    assert chosen("full") == everything
    assert chosen("quick") == everything - LONG


def test_what_is_long_exists_and_is_long_for_one_reason() -> None:
    assert load().get("JQ-ENQ-11").id in VOLUME
    assert {clause.id for clause in load().clauses()} >= LONG
    assert len(LONG) == len(VOLUME) + len(ROUNDS) + len(EVERYWHERE)


def test_no_clause_of_a_quick_run_is_after_a_long_one() -> None:
    quick = [clause for clause in load().clauses() if clause.id not in LONG]
    assert [clause.id for clause in quick if LONG.intersection(clause.after)] == []


def test_every_port_is_left_with_most_of_its_clauses() -> None:
    for spec in memory:
        assert len(choose(spec, Choice(profile="quick"), load())) > 0.85 * len(load().clauses(spec.port))


def test_a_clause_that_is_asked_for_is_tried_in_any_profile() -> None:
    ledger = memory[2]
    choice = Choice(profile="quick", only=["SL-CANCELLATION-02"])
    assert [clause.id for clause in choose(ledger, choice, load())] == ["SL-CANCELLATION-02"]
    assert run_sync(ledger, Choice(profile="quick", only=["SL-DECLARE-01"])).left_out == 0


def test_a_report_says_how_many_are_left() -> None:
    report = run_sync(memory[2], Choice(profile="quick"))
    assert report.verdict == "Conformant; --profile full tries 1 clause more."
