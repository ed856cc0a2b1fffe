"""What became of the mutants when all clauses were tried on them, kept in matrix.json beside this module."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Final

from conformance.clause import Level
from conformance.registry import load
from tests.mutants.catalogue import BACKENDS, MUTANTS, Mutant, mutants_of
from tests.mutants.change import diff_of

SEEN: Final = MUTANTS / "matrix.json"
MOST_KILLERS: Final = 10
"""A clause that fails only together with more than these is not proven by that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What became of a mutant."""

    fingerprint: str
    """Of the mutant, as it was then."""
    whole: bool
    """All clauses of the ports that it can be felt on were tried, not only those that it names."""
    fails: Sequence[str]
    """The clauses that failed, of those that were tried."""
    says: Mapping[str, str]
    """What the clauses said that the mutant names."""
    fails_one_by_one: Sequence[str] | None = None
    """Of a race: the clauses that do not pass with one instance, and one call after the other."""


def fingerprint(mutant: Mutant) -> str:
    told = [mutant.name, *diff_of(mutant), *(f"{killer.clause} {killer.words}" for killer in mutant.killers)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def is_current(mutant: Mutant, seen: Mapping[str, Seen]) -> bool:
    """Whether what was seen is of the mutant as it is now."""
    found = seen.get(mutant.key)
    if found is None or found.fingerprint != fingerprint(mutant):
        return False
    return found.fails_one_by_one is not None or not mutant.is_race


def read() -> dict[str, Seen]:
    if not SEEN.exists():
        return {}
    return {name: Seen(**value) for name, value in json.loads(SEEN.read_text(encoding="utf-8")).items()}


def write(seen: Mapping[str, Seen]) -> None:
    values = {name: asdict(seen[name]) for name in sorted(seen)}
    SEEN.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@cache
def must_clauses() -> tuple[str, ...]:
    return tuple(clause.id for clause in load().clauses() if clause.level is Level.MUST)


def proofs(seen: Mapping[str, Seen]) -> dict[str, list[Mutant]]:
    """For each clause the mutants that it is the named killer of and that few others kill."""
    found: dict[str, list[Mutant]] = {}
    for mutant in (mutant for backend in BACKENDS for mutant in mutants_of(backend)):
        fails = seen[mutant.key].fails if mutant.key in seen else ()
        for killer in mutant.killers:
            if killer.clause in fails and seen[mutant.key].whole and len(fails) <= MOST_KILLERS:
                found.setdefault(killer.clause, []).append(mutant)
    return found
