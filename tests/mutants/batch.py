"""python -m tests.mutants: is every mutant killed by its clauses, for the reasons that are given?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.mutants.catalogue import BACKENDS, Mutant, chosen
from tests.mutants.server import is_held, needs_postgres, run_beside_postgres
from tests.mutants.trial import Verdict, listed, load, tried


def complaint(mutant: Mutant, answer: list[Verdict] | str) -> str:
    """What is wrong with how the mutant died, or an empty text."""
    if isinstance(answer, str):
        return answer
    verdicts = {verdict.clause: verdict for verdict in answer}
    told: list[str] = []
    for killer in mutant.killers:
        verdict = verdicts[killer.clause]
        if verdict.outcome == "NOT_TESTED":
            failed = [f"{each.clause}: {each.said}" for each in answer if each.outcome == "FAIL"]
            told.append(f"{killer.clause} is not tested; {'; '.join(failed) or verdict.said}")
        elif verdict.outcome != "FAIL":
            told.append(f"{killer.clause} is {verdict.outcome} {verdict.said}".rstrip())
        elif verdict.accident:
            told.append(f"{killer.clause} fails by an accident: {verdict.said}")
        elif not killer.words or killer.words not in verdict.said:
            told.append(f"{killer.clause} says {verdict.said!r}, not {killer.words!r}")
    return "; ".join(told)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("backend", choices=BACKENDS)
    parser.add_argument("names", nargs="*", help="names of mutants, areas, or patterns of them; none means all")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    if needs_postgres(given.backend) and not is_held():
        return run_beside_postgres("tests.mutants", sys.argv[1:] if arguments is None else arguments)
    mutants = chosen(given.backend, given.names)
    load(given.backend)
    bad = 0
    for task, answer in tried([listed(mutant) for mutant in mutants], given.jobs):
        assert task.mutant is not None
        if wrong := complaint(task.mutant, answer):
            bad += 1
            _say(f"{task.mutant.area}/{task.mutant.name}: {wrong}")
    _say(f"{len(mutants) - bad} of {len(mutants)} mutants are killed as listed")
    return 1 if bad else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
