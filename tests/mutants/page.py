"""docs/mutants.md with the score, and a page for each kind of adapter with its mutants and what saw them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from tests.mutants.catalogue import BACKENDS, Mutant, mutants_of
from tests.mutants.change import MOST_CHANGED_LINES, diff_of
from tests.mutants.one_by_one import NEEDS_COMPANY
from tests.mutants.seen import MOST_KILLERS, Seen, must_clauses, proofs

MADE_BY: Final = "Made by `python -m tests.mutants.matrix`; change the mutants in `tests/mutants`, not this page."
_ADAPTERS: Final = {
    "memory": "in memory",
    "sqlite": "SQLite",
    "postgres": "Postgres",
    "postgres-reference": "Postgres, on the schema of the reference",
    "postgres-unversioned": "Postgres, on a schema without definition versions",
    "postgres-new-york": "Postgres, with sessions in another time zone",
}
_TOP: Final = f"""\
# Mutants

{MADE_BY}

What is it worth that an adapter passes the clauses of `conformance`? Here they are tried on adapters that must not
pass. A mutant is a working adapter, one of the built-in ones, with one plausible mistake: a condition, an order, a
lock, a column that is left out, a branch that is swapped, in at most {MOST_CHANGED_LINES} changed lines. One that
raises, does nothing or returns a constant does not count. Each names the clauses that have to see it and words of what
they then have to say; it is killed when all of them do. Mutants were tried whole, with all clauses of the ports that
they can be felt on, or with those that they name alone; the table tells how many. A clause is proven when it is a named
killer of a mutant that was tried whole and that no more than {MOST_KILLERS} clauses see.
"""
_RACES: Final = f"""\
## What a suite without concurrency would have missed

These mutants show only in calls that run at the same time, or on two instances. The clauses were tried on them twice:
as they are, and then as a sequential suite would have run them, with one instance and one call after the other, the
clauses otherwise unchanged. {", ".join(sorted(NEEDS_COMPANY))} were left out there: in these a call waits for one that
is made beside it.
"""
_HOSTILE: Final = """\
## Adapters that are none

What raises, hangs or does nothing is no mutant, but a test of the harness: such adapters must end red, by the right
name, and stop nothing. `tests/conformance/test_hostile.py` runs all clauses of a port on queues of which every method
hangs, raises CancelledError, leaks a task or does nothing, and on one that declares nothing.
`tests/conformance/test_misbehaving.py` has those that swallow their cancellation, block the event loop, spin, raise,
lack every method, or leak tasks, threads and connections, with the words that each gets.
"""


def pages(seen: Mapping[str, Seen]) -> dict[str, str]:
    """The text of each page, by its path in docs."""
    made = {"mutants.md": [_TOP, *_score(seen), *_races(seen), _HOSTILE, *_by_clause(seen)]}
    for backend in BACKENDS:
        made[_path(backend)] = list(_of_backend(backend, seen))
    return {path: "\n".join(lines).rstrip() + "\n" for path, lines in made.items()}


def score(seen: Mapping[str, Seen]) -> str:
    """How many mutants are killed and clauses proven, in a line."""
    mutants = [mutant for backend in BACKENDS for mutant in mutants_of(backend)]
    killed = sum(_is_killed(mutant, seen) for mutant in mutants)
    proven, musts = proofs(seen), must_clauses()
    count = sum(clause in proven for clause in musts)
    return (
        f"Mutant score: {killed * 100 // len(mutants)} % ({killed} of {len(mutants)} mutants are killed). "
        f"{count} of {len(musts)} MUST clauses are proven: {count * 100 // len(musts)} %."
    )


def _score(seen: Mapping[str, Seen]) -> Iterator[str]:
    yield f"**{score(seen)}**"
    yield ""
    proven = proofs(seen)
    if lacking := [clause for clause in must_clauses() if clause not in proven]:
        yield f"Not proven: {_joined(lacking)}."
        yield ""
    yield "| Adapters | Mutants | Killed | Tried whole | Races among them | Seen one by one |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for backend in BACKENDS:
        mutants = mutants_of(backend)
        killed = sum(_is_killed(mutant, seen) for mutant in mutants)
        races = [mutant for mutant in mutants if mutant.is_race]
        alone = sum(bool(_one_by_one(mutant, seen)) for mutant in races)
        whole = sum(mutant.key in seen and seen[mutant.key].whole for mutant in mutants)
        counts = (len(mutants), killed, whole, len(races), alone)
        yield f"| [{_ADAPTERS[backend]}]({_path(backend)}) | {' | '.join(map(str, counts))} |"
    yield ""


def _races(seen: Mapping[str, Seen]) -> Iterator[str]:
    races = [mutant for backend in BACKENDS for mutant in mutants_of(backend) if mutant.is_race]
    alone = sum(bool(_one_by_one(mutant, seen)) for mutant in races)
    killed = sum(_is_killed(mutant, seen) for mutant in races)
    yield _RACES
    yield f"**As they are the clauses kill {killed} of {len(races)}; one by one they would have seen {alone}.**"
    yield ""
    yield "| Mutant | Adapters | Killed by | Clauses that fail one by one | Of |"
    yield "| --- | --- | --- | --- | --- |"
    for mutant in races:
        killers = _joined(killer.clause for killer in mutant.killers)
        of = "all of the port" if mutant.key in seen and seen[mutant.key].whole else "those it names"
        failed = _joined(_one_by_one(mutant, seen)) or "none"
        yield f"| {_link(mutant)} | {_ADAPTERS[mutant.backend]} | {killers} | {failed} | {of} |"
    yield ""


def _by_clause(seen: Mapping[str, Seen]) -> Iterator[str]:
    proven = proofs(seen)
    yield "## What each clause is proven by"
    yield ""
    yield "| Clause | Mutants |"
    yield "| --- | --- |"
    for clause in must_clauses():
        yield f"| {clause} | {_joined(map(_link, proven.get(clause, ())))} |"


def _of_backend(backend: str, seen: Mapping[str, Seen]) -> Iterator[str]:
    yield f"# Mutants of the adapters: {_ADAPTERS[backend]}"
    yield ""
    yield MADE_BY
    yield "[What this is, and the score](../mutants.md)."
    yield ""
    for area, mutants in groupby(mutants_of(backend), lambda mutant: mutant.area):
        yield f"## {area.replace('_', ' ').capitalize()}"
        yield ""
        for mutant in mutants:
            yield from _told(mutant, seen.get(mutant.key))


def _told(mutant: Mutant, seen: Seen | None) -> Iterator[str]:
    yield f"### {mutant.name}"
    yield ""
    places = dict.fromkeys(f"{hunk.file} {hunk.scope}".strip() for hunk in mutant.hunks)
    yield f"{'A race in' if mutant.is_race else 'In'} {_joined(f'`{place}`' for place in places)}"
    yield ""
    yield "```diff"
    yield from diff_of(mutant)
    yield "```"
    yield ""
    if seen is None:
        yield "Not tried."
    else:
        yield from (f"- {clause}: {_in_code(said)}" for clause, said in seen.says.items())
        if others := [clause for clause in seen.fails if clause not in seen.says]:
            yield f"- Also {_joined(others)}"
    yield ""


def _is_killed(mutant: Mutant, seen: Mapping[str, Seen]) -> bool:
    fails = seen[mutant.key].fails if mutant.key in seen else ()
    return all(killer.clause in fails for killer in mutant.killers)


def _one_by_one(mutant: Mutant, seen: Mapping[str, Seen]) -> list[str]:
    return list(seen[mutant.key].fails_one_by_one or ()) if mutant.key in seen else ["not tried"]


def _path(backend: str) -> str:
    return f"mutants/{backend}.md"


def _link(mutant: Mutant) -> str:
    return f"[{mutant.name}]({_path(mutant.backend)}#{mutant.name})"


def _joined(words: Iterable[str]) -> str:
    return ", ".join(words)


def _in_code(said: str) -> str:
    """As text that Markdown leaves alone."""
    text = " ".join(said.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"
