"""How mutants are written down, and read.

    == external-key-forgotten
    SL-CLAIM-02: external_key
    @ workflow_adapters/memory/step_ledger.py MemoryStepLedger.claim
    - external_key=step.external_key
    + external_key=None

The name; each clause that must see the mistake, with words of the failure that it must report; then the change. Behind
the file may stand the function or class in which the old text is looked for. It must be found there exactly once,
however its lines are indented, and the new lines are indented as it was. `[race]` behind the name: only calls that run
at the same time can show it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
MUTANTS: Final = Path(__file__).parent
BACKENDS: Final = {
    "memory": "tests.conformance.backends:memory",
    "sqlite": "tests.conformance.backends:sqlite",
    "postgres": "tests.conformance.backends:postgres",
    "postgres-reference": "tests.postgres.profiles:bare",
    "postgres-unversioned": "tests.postgres.profiles:without_versions",
    "postgres-new-york": "tests.postgres.profiles:new_york",
}
"""The directories that mutants are in, and the Specs that they are tried with."""

_HEADER: Final = re.compile(r"== (?P<name>[a-z0-9-]+)(?P<race> \[race\])?")
_KILLER: Final = re.compile(r"(?P<clause>(?:WP|JQ|SL|AI)-[A-Z]+-\d\d): ?(?P<words>.*)")
_PLACE: Final = re.compile(r"@ (?P<file>\S+\.py)(?: (?P<scope>\S+))?")


@dataclass(frozen=True, slots=True)
class Killer:
    """A clause that must fail, and words of its failure."""

    clause: str
    words: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """In `scope` of `file` (relative to the repository), or anywhere in it, the lines `old` become `new`."""

    file: str
    scope: str
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake."""

    name: str
    backend: str
    area: str
    is_race: bool
    killers: tuple[Killer, ...]
    hunks: tuple[Hunk, ...]

    @property
    def key(self) -> str:
        return f"{self.backend}/{self.name}"


@cache
def mutants_of(backend: str) -> tuple[Mutant, ...]:
    """All mutants of a backend, in the order of their files."""
    found = [mutant for path in files_of(backend) for mutant in read(path)]
    names = [mutant.name for mutant in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"these names are used twice: {', '.join(twice)}")
    return tuple(found)


def chosen(backend: str, patterns: Sequence[str]) -> list[Mutant]:
    """The mutants of a backend whose name or area is, or fits, one of the patterns; none means all."""
    return [
        mutant
        for mutant in mutants_of(backend)
        if any(
            fnmatch.fnmatchcase(name, pattern) for pattern in patterns or ["*"] for name in (mutant.name, mutant.area)
        )
    ]


def files_of(backend: str) -> list[Path]:
    return sorted((MUTANTS / backend).glob("*.mutants"))


def read(path: Path) -> Iterator[Mutant]:
    """The mutants of a file; the directory is the backend and the name of the file the area."""
    lines = [line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()]
    blocks: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("== "):
            blocks.append([])
        if not blocks:
            raise ValueError(f"{path.name}:{number}: {line!r} belongs to no mutant")
        blocks[-1].append(line)
    for block in blocks:
        try:
            yield _mutant(block, path)
        except ValueError as error:
            raise ValueError(f"{path.name}: {block[0]}: {error}") from error


def _mutant(block: list[str], path: Path) -> Mutant:
    header = _HEADER.fullmatch(block[0])
    if header is None:
        raise ValueError("a header is '== name-of-mutant', and ' [race]' behind it where that is so")
    killers: list[Killer] = []
    position = 1
    while position < len(block) and (match := _KILLER.fullmatch(block[position])):
        killers.append(Killer(match["clause"], match["words"]))
        position += 1
    if not killers:
        raise ValueError("no clause is named that must see it")
    hunks = tuple(_hunks(block[position:]))
    return Mutant(header["name"], path.parent.name, path.stem, header["race"] is not None, tuple(killers), hunks)


def _hunks(lines: list[str]) -> Iterator[Hunk]:
    starts = [place for place, line in enumerate(lines) if line.startswith("@ ")]
    if not starts or starts[0] != 0:
        raise ValueError("behind the clauses comes '@ file scope'")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        place = _PLACE.fullmatch(lines[start])
        body = lines[start + 1 : end]
        if place is None or any(line[0] not in "-+" for line in body):
            raise ValueError(f"not '@ file scope' with lines of - and + under it: {lines[start]!r}")
        old = tuple(line[2:] for line in body if line[0] == "-")
        if not old:
            raise ValueError("no old text")
        yield Hunk(place["file"], place["scope"] or "", old, tuple(line[2:] for line in body if line[0] == "+"))
