"""Clauses handed out to several processes: each once, adapters kept open, and a report when the last has left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.choice import Choice
from conformance.clause import Clause, Port
from conformance.conclusion import Farewell, Stopwatch, concluded
from conformance.outcome import Outcome, Result
from conformance.registry import load
from conformance.shares import Share, Shares
from tests.conformance.trials import spec_of

LEDGER = load().clauses(Port.STEP_LEDGER)
LOGGER = load().clauses(Port.AI_CALL_LOGGER)
GOODBYE = Farewell(server=None, refused=None, leftovers="")


def met(clause_id: str) -> Result:
    return Result(clause_id=clause_id, outcome=Outcome.PASS)


def try_all(shares: Shares, share: Share | None) -> None:
    assert share is not None
    for id in share.ids:
        shares.note(share.place, met(id))


def taken(shares: Shares, worker: str) -> Share:
    share = shares.hand_out(worker)
    assert share is not None
    return share


def test_every_clause_is_handed_out_once_and_in_order() -> None:
    shares = Shares([LEDGER, LOGGER])
    seen: list[Share] = []
    while (share := shares.hand_out("only")) is not None:
        seen.append(share)
    assert [id for share in seen for id in share.ids] == [clause.id for clause in [*LEDGER, *LOGGER]]
    assert len(shares) == 0


def test_a_worker_stays_then_begins_another_then_helps() -> None:
    shares = Shares([LEDGER[:24], LOGGER[:8], LOGGER[8:48]])
    assert [taken(shares, worker).place for worker in ("first", "second", "third")] == [0, 1, 2]
    assert taken(shares, "first").place == 0
    # Nothing is left of 1, one share of 0, four of 2.
    assert taken(shares, "second").place == 2
    assert taken(shares, "first").place == 0
    assert taken(shares, "first").place == 2
    assert shares.place_of("first") == 2


def test_an_adapter_is_done_when_all_is_tried_and_everybody_has_left_it() -> None:
    shares = Shares([LEDGER[:16]])
    try_all(shares, shares.hand_out("first"))
    second = shares.hand_out("second")
    shares.note(0, GOODBYE)
    assert not shares.is_done(0)
    try_all(shares, second)
    assert not shares.is_done(0)
    shares.note(0, GOODBYE)
    assert shares.is_done(0)
    assert list(shares.results(0)) == [clause.id for clause in LEDGER[:16]]
    assert list(shares.farewells(0)) == [GOODBYE, GOODBYE]


def after_another(clauses: Sequence[Clause]) -> Clause:
    """One that is handed out later than what it is after."""
    places = {clause.id: place for place, clause in enumerate(clauses)}
    return next(clause for clause in clauses if any(places[id] // 8 < places[clause.id] // 8 for id in clause.after))


@pytest.mark.parametrize("clauses", [LEDGER, LOGGER])
def test_a_share_comes_with_what_is_known_of_earlier_clauses(clauses: Sequence[Clause]) -> None:
    shares = Shares([clauses])
    later = after_another(clauses)
    while later.id not in (share := taken(shares, "only")).ids:
        try_all(shares, share)
    known = {result.clause_id for result in share.known}
    assert known
    assert known == {id for each in share.ids for id in load().get(each).after} - set(share.ids)


def test_what_any_process_says_at_the_end_is_in_the_report() -> None:
    farewells = [
        GOODBYE,
        Farewell(server="PostgreSQL 16.4 (dsn)", refused=None, leftovers="1 thread"),
        Farewell(server="PostgreSQL 16.4 (dsn)", refused="rows are there", leftovers="2 tasks"),
    ]
    tried = [(LEDGER[0], met(LEDGER[0].id))]
    report = concluded(spec_of(), Choice(seed=7), tried, farewells, Stopwatch(), load())
    assert (report.subject.server, report.refused) == ("PostgreSQL 16.4 (dsn)", "rows are there")
    assert report.leftovers == "1 thread, 2 tasks"
