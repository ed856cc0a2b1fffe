"""docs/mutants.md: the score, every mutant with what saw it, and for each clause the mutants that it is proven by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from tests.mutants.catalogue import BACKENDS, Mutant, mutants_of
from tests.mutants.change import MOST_CHANGED_LINES, diff_of
from tests.mutants.seen import MOST_KILLERS, Seen, must_clauses, proofs

_TOP: Final = f"""\
# Mutants

Made by `python -m tests.mutants.matrix`; change the mutants in `tests/mutants`, not this page.

Is the suite in `conformance` worth running? A mutant is a working adapter with one plausible mistake: a condition, an
order, a lock, a column that is left out, a branch that is swapped, in at most {MOST_CHANGED_LINES} changed lines. One
that raises, does nothing or returns a constant does not count. Each names the clauses that have to see it and words of
what they then have to say; the tests hold them to it. Here every clause was tried on every mutant, and a clause counts
as proven when it is a named killer of a mutant that at most {MOST_KILLERS} clauses see.
"""
_RACES: Final = """\
Mutants marked *race* show only in calls that run at the same time, or on two instances. Their clauses were tried
once more as a suite without concurrency would have run them: with one instance, and one call after the other.
"""


def page(seen: Mapping[str, Seen]) -> str:
    return "\n".join([_TOP, *_score(seen), "", *_by_mutant(seen), *_by_clause(seen)]).rstrip() + "\n"


def _score(seen: Mapping[str, Seen]) -> Iterator[str]:
    proven, musts = proofs(seen), must_clauses()
    lacking = [clause for clause in musts if clause not in proven]
    count = len(musts) - len(lacking)
    yield f"**{count} of {len(musts)} MUST clauses are proven: {count * 100 // len(musts)} %.**"
    if lacking:
        yield f"Not proven: {', '.join(lacking)}."
    yield ""
    yield "| Adapters | Mutants | Killed by a clause they name | Races | Races that calls one by one would have seen |"
    yield "|---|---|---|---|---|"
    for backend in BACKENDS:
        mutants = [mutant for mutant in mutants_of(backend) if mutant.key in seen]
        killed = sum(any(killer.clause in seen[mutant.key].fails for killer in mutant.killers) for mutant in mutants)
        races = [mutant for mutant in mutants if mutant.is_race]
        missed = sum(bool(seen[mutant.key].fails_one_by_one) for mutant in races)
        yield f"| {backend} | {len(mutants)} | {killed} | {len(races)} | {missed} |"
    yield ""
    yield _RACES


def _by_mutant(seen: Mapping[str, Seen]) -> Iterator[str]:
    mutants = [mutant for backend in BACKENDS for mutant in mutants_of(backend) if mutant.key in seen]
    for (backend, area), ours in groupby(mutants, lambda mutant: (mutant.backend, mutant.area)):
        yield f"## {backend}: {area.replace('_', ' ')}"
        yield ""
        for mutant in ours:
            yield from _told(mutant, seen[mutant.key])


def _told(mutant: Mutant, seen: Seen) -> Iterator[str]:
    yield f"### {mutant.name}"
    yield ""
    places = dict.fromkeys(f"{hunk.file} {hunk.scope}".strip() for hunk in mutant.hunks)
    yield f"{'*race*, ' if mutant.is_race else ''}in {_joined(f'`{place}`' for place in places)}"
    yield ""
    yield "```diff"
    yield from diff_of(mutant)
    yield "```"
    yield ""
    for clause, said in seen.says.items():
        yield f"- {clause}: {_in_code(said)}"
    if others := [clause for clause in seen.fails if clause not in seen.says]:
        yield f"- Also {_joined(others)}"
    yield ""


def _by_clause(seen: Mapping[str, Seen]) -> Iterator[str]:
    proven = proofs(seen)
    yield "## What each clause is proven by"
    yield ""
    yield "| Clause | Mutants |"
    yield "|---|---|"
    for clause in must_clauses():
        yield f"| {clause} | {_joined(mutant.name for mutant in proven.get(clause, ()))} |"


def _joined(words: Iterable[str]) -> str:
    return ", ".join(words)


def _in_code(said: str) -> str:
    """As text that Markdown leaves alone."""
    text = " ".join(said.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"
