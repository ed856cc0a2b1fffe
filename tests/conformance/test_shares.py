"""Clauses handed out to several processes: each once, adapters kept open, and a report when the last has left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from conformance.choice import Choice
from conformance.clause import Clause, Port
from conformance.conclusion import Farewell, Stopwatch, concluded
from conformance.outcome import Outcome, Result
from conformance.registry import load
from conformance.shares import Later, Share, Shares
from tests.conformance.trials import spec_of

LEDGER = load().clauses(Port.STEP_LEDGER)
LOGGER = load().clauses(Port.AI_CALL_LOGGER)
GOODBYE = Farewell(server=None, refused=None, leftovers="")


def met(clause_id: str) -> Result:
    return Result(clause_id=clause_id, outcome=Outcome.PASS)


def taken(shares: Shares, worker: str) -> Share:
    share = shares.hand_out(worker)
    assert isinstance(share, Share)
    return share


def try_all(shares: Shares, worker: str, share: Share) -> None:
    for id in share.ids:
        shares.note(worker, share.place, met(id))


def without_order(clauses: Sequence[Clause]) -> list[Clause]:
    return [replace(clause, after=()) for clause in clauses]


def test_every_clause_is_handed_out_once_and_in_order() -> None:
    shares = Shares([LEDGER, LOGGER])
    seen: list[Share] = []
    while isinstance(share := shares.hand_out("only"), Share):
        seen.append(share)
        try_all(shares, "only", share)
    assert share is None
    assert [id for share in seen for id in share.ids] == [clause.id for clause in [*LEDGER, *LOGGER]]
    assert len(shares) == 0


def test_a_worker_stays_then_begins_another_then_helps() -> None:
    free = without_order([*LEDGER, *LOGGER])
    shares = Shares([free[:24], free[24:32], free[32:72]])
    assert [taken(shares, worker).place for worker in ("first", "second", "third")] == [0, 1, 2]
    assert taken(shares, "first").place == 0
    # Nothing is left of 1, one share of 0, four of 2.
    assert taken(shares, "second").place == 2
    assert taken(shares, "first").place == 0
    assert taken(shares, "first").place == 2


def test_a_worker_is_where_it_was_until_it_has_left() -> None:
    shares = Shares([without_order(LEDGER[:8]), without_order(LOGGER[:8])])
    assert shares.whereabouts("only") is None
    first = taken(shares, "only")
    try_all(shares, "only", first)
    assert taken(shares, "only").place == 1
    assert shares.whereabouts("only") == 0
    shares.note("only", 0, GOODBYE)
    assert shares.whereabouts("only") == 1
    shares.note("only", 1, GOODBYE)
    assert shares.whereabouts("only") == 1


def test_an_adapter_is_done_when_all_is_tried_and_everybody_has_left_it() -> None:
    clauses = without_order(LEDGER[:16])
    shares = Shares([clauses])
    try_all(shares, "first", taken(shares, "first"))
    second = taken(shares, "second")
    shares.note("first", 0, GOODBYE)
    assert not shares.is_done(0)
    try_all(shares, "second", second)
    assert not shares.is_done(0)
    shares.note("second", 0, GOODBYE)
    assert shares.is_done(0)
    assert [clause.id for clause, _ in shares.tried(0)] == [clause.id for clause in clauses]
    assert list(shares.farewells(0)) == [GOODBYE, GOODBYE]


@pytest.mark.parametrize("port", Port)
def test_a_share_waits_for_what_its_clauses_are_after(port: Port) -> None:
    clauses = load().clauses(port)
    shares = Shares([clauses])
    known: set[str] = set()
    in_hand: list[Share] = []
    handed_out: list[str] = []
    while len(known) < len(clauses):
        # As many workers as can begin; then the one that began last ends first.
        while isinstance(share := shares.hand_out(f"worker {len(handed_out)}"), Share):
            needed = {id for each in share.ids for id in load().get(each).after} - set(share.ids)
            told = {result.clause_id for result in share.known}
            assert needed <= told <= known
            in_hand.append(share)
            handed_out += share.ids
        assert share is None or isinstance(share, Later)
        ended = in_hand.pop()
        try_all(shares, f"worker {len(handed_out)}", ended)
        known |= set(ended.ids)
    assert sorted(handed_out) == sorted(clause.id for clause in clauses)


def test_what_is_not_asked_for_is_not_waited_for() -> None:
    chosen = [clause for clause in LEDGER if clause.id.startswith("SL-CAS-")]
    assert any(clause.after for clause in chosen)
    assert taken(Shares([chosen]), "only").known == []


def test_what_is_asked_for_is_waited_for_through_what_is_not() -> None:
    # SL-NULL-01 is after SL-UPDATE-01, and that after SL-CLAIM-01.
    first = load().get("SL-CLAIM-01")
    shares = Shares([[first, *without_order(LEDGER[8:15]), load().get("SL-NULL-01")]])
    begun = taken(shares, "first")
    assert isinstance(shares.hand_out("second"), Later)
    try_all(shares, "first", begun)
    assert [result.clause_id for result in taken(shares, "second").known] == ["SL-CLAIM-01"]


def test_what_any_process_says_at_the_end_is_in_the_report() -> None:
    farewells = [
        GOODBYE,
        Farewell(server="PostgreSQL 16.4 (dsn)", refused=None, leftovers="1 thread"),
        Farewell(server="PostgreSQL 16.4 (dsn)", refused="rows are there", leftovers="2 tasks"),
        Farewell(server="PostgreSQL 16.4 (dsn)", refused=None, leftovers="1 thread"),
    ]
    tried = [(LEDGER[0], met(LEDGER[0].id))]
    report = concluded(spec_of(), Choice(seed=7), tried, farewells, Stopwatch(), load())
    assert (report.subject.server, report.refused) == ("PostgreSQL 16.4 (dsn)", "rows are there")
    assert report.leftovers == "1 thread, 2 tasks"
