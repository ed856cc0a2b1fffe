"""python -m tests.mutants.matrix: all clauses on every mutant that has changed, and the page that shows what they saw.

What was seen is kept in matrix.json beside this module; docs/mutants.md is made from it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.mutants import trial
from tests.mutants.catalogue import BACKENDS, ROOT, Mutant, mutants_of
from tests.mutants.page import page
from tests.mutants.seen import Seen, fingerprint, is_current, must_clauses, proofs, read, write
from tests.mutants.server import is_held, needs_postgres, run_beside_postgres

PAGE: Final = ROOT / "docs" / "mutants.md"
_OF_ONE_PORT: Final = re.compile(
    r"(?P<WP>runs|stages|annotations|definitions|logs|outbox\w*|idempotency|persistence|tables)"
    r"|(?P<JQ>job_\w+|claims?\w*|fairness\w*|lookahead|spans)|(?P<SL>step_ledger)|(?P<AI>ai_call\w*)"
)
_CHANGES_EACH_TIME: Final = re.compile(r"(?<=-)[0-9a-f]{8}(?=[b-zA-Z_'\"),: é]|1'|$)|[0-9a-f]{8}-[0-9a-f-]{27}")
_INSTANT: Final = re.compile(r"20(?!26-0[1-4]|25-)\d\d-\d\d-\d\dT[\d:.+]+")


def ports_of(mutant: Mutant) -> tuple[str, ...]:
    """The ports that the change can be felt on; all of them where it is in what they share."""
    listed = dict.fromkeys(killer.clause[:2] for killer in mutant.killers)
    owners = [_OF_ONE_PORT.fullmatch(Path(hunk.file).stem) for hunk in mutant.hunks]
    return tuple(listed) if all(owners) else tuple(dict.fromkeys((*listed, "WP", "JQ", "SL", "AI")))


def look(mutants: Sequence[Mutant], jobs: int) -> dict[str, Seen]:
    """Try all clauses on these mutants of one backend."""
    trial.load(mutants[0].backend)
    races = [trial.listed(mutant, one_by_one=True) for mutant in mutants if mutant.is_race]
    one_by_one = {mutant.key: _not_passed(verdicts) for mutant, verdicts in _tried(races, jobs)}
    tasks = [
        trial.Task(mutant=mutant, backend=mutant.backend, ports=ports_of(mutant), seconds=trial.ALL_SECONDS)
        for mutant in mutants
    ]
    found: dict[str, Seen] = {}
    for number, (mutant, verdicts) in enumerate(_tried(tasks, jobs), 1):
        failed, alone = _failed(verdicts), one_by_one.get(mutant.key)
        listed = [killer.clause for killer in mutant.killers]
        found[mutant.key] = Seen(
            fingerprint=fingerprint(mutant),
            fails=sorted(failed),
            says={clause: failed[clause] for clause in listed if clause in failed},
            fails_one_by_one=None if alone is None else [clause for clause in listed if clause in alone],
        )
        sys.stderr.write(f"{number}/{len(tasks)} {mutant.name}: {len(failed)} clauses fail\n")
    return found


def _tried(tasks: Sequence[trial.Task], jobs: int) -> Iterator[tuple[Mutant, Sequence[trial.Verdict]]]:
    for task, answer in trial.tried(tasks, jobs):
        assert task.mutant is not None
        if isinstance(answer, str):
            sys.exit(f"{task.mutant.name}: {answer}")
        yield task.mutant, answer


def _failed(verdicts: Sequence[trial.Verdict]) -> dict[str, str]:
    """What the clauses said that failed."""
    return {verdict.clause: _settled(verdict.said) for verdict in verdicts if verdict.outcome == "FAIL"}


def _not_passed(verdicts: Sequence[trial.Verdict]) -> set[str]:
    return {verdict.clause for verdict in verdicts if verdict.outcome != "PASS"}


def _settled(said: str) -> str:
    """The words without what is different in every run."""
    text = _INSTANT.sub("…", _CHANGES_EACH_TIME.sub("…", said))
    return text if len(text) <= 200 else f"{text[:200].rsplit(' ', 1)[0]} …"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.matrix", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also mutants that have not changed since")
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="of these alone")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    backends = given.backend or BACKENDS
    if any(map(needs_postgres, backends)) and not is_held():
        return run_beside_postgres("tests.mutants.matrix", sys.argv[1:] if arguments is None else arguments)
    known = {mutant.key for backend in BACKENDS for mutant in mutants_of(backend)}
    seen = {name: value for name, value in read().items() if name in known}
    for backend in backends:
        due = [mutant for mutant in mutants_of(backend) if given.all or not is_current(mutant, seen)]
        # In bites, so that an interrupted run has not been for nothing.
        for start in range(0, len(due), 50):
            seen |= look(due[start : start + 50], given.jobs)
            write(seen)
    write(seen)
    PAGE.write_text(page(seen), encoding="utf-8")
    musts, proven = must_clauses(), proofs(seen)
    sys.stdout.write(f"{sum(clause in proven for clause in musts)} of {len(musts)} MUST clauses are proven\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
