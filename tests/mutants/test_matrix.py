"""What is published of the mutants is true of them as they are now."""

from __future__ import annotations

from conformance.registry import load
from tests.mutants.catalogue import BACKENDS, mutants_of
from tests.mutants.matrix import DOCS
from tests.mutants.page import pages, score
from tests.mutants.seen import Seen, is_current, must_clauses, proofs, read

MUTANTS = [mutant for backend in BACKENDS for mutant in mutants_of(backend)]
SEEN = read()
_AGAIN = "run: python -m tests.mutants.matrix"


def test_all_clauses_were_tried_on_every_mutant() -> None:
    assert {mutant.key for mutant in MUTANTS} == set(SEEN), _AGAIN
    assert [mutant.key for mutant in MUTANTS if not is_current(mutant, SEEN)] == [], _AGAIN


def test_every_mutant_was_killed_by_the_clauses_it_names() -> None:
    named = {mutant.key: {killer.clause for killer in mutant.killers} for mutant in MUTANTS}
    assert [key for key, clauses in named.items() if not clauses <= set(SEEN[key].fails)] == []


def test_every_clause_that_binds_is_proven() -> None:
    proven = proofs(SEEN)
    assert [clause for clause in must_clauses() if clause not in proven] == []


def test_no_race_is_seen_without_concurrency() -> None:
    races = [mutant for mutant in MUTANTS if mutant.is_race]
    assert len(races) > 30
    assert [mutant.key for mutant in races if SEEN[mutant.key].fails_one_by_one] == []


def test_the_pages_show_what_was_seen() -> None:
    made = pages(SEEN)
    assert {f"mutants/{path.name}" for path in (DOCS / "mutants").iterdir()} | {"mutants.md"} == set(made)
    assert [path for path, text in made.items() if (DOCS / path).read_text(encoding="utf-8") != text] == [], _AGAIN


def test_the_score_is_full() -> None:
    told = score(SEEN)
    assert told.startswith(f"Mutant score: 100 % ({len(MUTANTS)} of {len(MUTANTS)} mutants are killed).")
    assert told.endswith("MUST clauses are proven: 100 %.")
    assert score({}).startswith("Mutant score: 0 % (0 of")


def test_a_mutant_that_most_clauses_see_proves_none() -> None:
    mutant = MUTANTS[0]
    clause = mutant.killers[0].clause
    many = [each.id for each in load().clauses()][:11]

    def proven_when(fails: list[str], *, whole: bool = True) -> bool:
        return clause in proofs({mutant.key: Seen(fingerprint="", whole=whole, fails=fails, says={})})

    assert proven_when([clause])
    assert not proven_when([clause], whole=False)
    assert not proven_when([clause, *many])
    assert not proven_when(many[-1:])
