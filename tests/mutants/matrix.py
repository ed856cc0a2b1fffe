"""python -m tests.mutants.matrix: all clauses on every mutant that has changed, and the pages that show what they saw.

What was seen is kept in matrix.json beside this module; docs/mutants.md and docs/mutants are made from it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.mutants import trial
from tests.mutants.batch import complaint
from tests.mutants.catalogue import BACKENDS, ROOT, Hunk, Mutant, chosen, mutants_of
from tests.mutants.page import pages, score
from tests.mutants.seen import Seen, fingerprint, is_current, read, write
from tests.mutants.server import is_held, needs_postgres, run_beside_postgres

DOCS: Final = ROOT / "docs"
_MODULE_OF_ONE_PORT: Final = re.compile(
    r"runs|stages|annotations|definitions|logs|outbox\w*|idempotency|persistence|tables"
    r"|job_\w+|claims?\w*|fairness\w*|lookahead|spans|lanes|next_due|step_ledger|ai_call\w*"
)
_FUNCTION_OF_ONE_PORT: Final = re.compile(r"\w+_(run|runs_for_purge|suspended_stages|annotations|ai_calls|recorded)")
_CHANGES_EACH_TIME: Final = re.compile(r"(?<=-)[0-9a-f]{8}(?=[b-zA-Z_'\"),: é]|1'|$)|[0-9a-f]{8}-[0-9a-f-]{27}")
_INSTANT: Final = re.compile(r"20(?!26-0[1-4]|25-)\d\d-\d\d-\d\dT[\d:.+]+")


def ports_of(mutant: Mutant) -> tuple[str, ...]:
    """The ports that the change can be felt on; all of them where it is in what they share."""
    listed = dict.fromkeys(killer.clause[:2] for killer in mutant.killers)
    is_shared = not all(map(_is_of_one_port, mutant.hunks))
    return tuple(dict.fromkeys((*listed, "WP", "JQ", "SL", "AI"))) if is_shared else tuple(listed)


def _is_of_one_port(hunk: Hunk) -> bool:
    module, function = Path(hunk.file).stem, hunk.scope.rpartition(".")[2]
    return _MODULE_OF_ONE_PORT.fullmatch(module) is not None or _FUNCTION_OF_ONE_PORT.fullmatch(function) is not None


def look(mutants: Sequence[Mutant], jobs: int, *, whole: bool = True) -> dict[str, Seen]:
    """Try these mutants of one backend with all clauses, or (not `whole`) with those that they name."""
    trial.load(mutants[0].backend)
    races = [_task(mutant, whole, one_by_one=True) for mutant in mutants if mutant.is_race]
    one_by_one = {mutant.key: sorted(_not_passed(verdicts)) for mutant, verdicts in _tried(races, jobs)}
    found: dict[str, Seen] = {}
    for number, (mutant, verdicts) in enumerate(_tried([_task(each, whole) for each in mutants], jobs), 1):
        failed, wrong = _failed(verdicts), complaint(mutant, verdicts)
        sys.stderr.write(f"{number}/{len(mutants)} {mutant.name}: {wrong or f'{len(failed)} clauses fail'}\n")
        if not wrong:
            found[mutant.key] = Seen(
                fingerprint=fingerprint(mutant),
                whole=whole,
                fails=sorted(failed),
                says=dict(_said(mutant, failed)),
                fails_one_by_one=one_by_one.get(mutant.key),
            )
    return found


def _task(mutant: Mutant, whole: bool, *, one_by_one: bool = False) -> trial.Task:
    task = replace(trial.listed(mutant), one_by_one=one_by_one)
    return replace(task, clauses=(), ports=ports_of(mutant), seconds=trial.ALL_SECONDS) if whole else task


def _said(mutant: Mutant, failed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What the clauses said that the mutant names. How a race ends is different each time, but for those words."""
    for killer in mutant.killers:
        yield killer.clause, killer.words if mutant.is_race else failed[killer.clause]


def _tried(tasks: Sequence[trial.Task], jobs: int) -> Iterator[tuple[Mutant, list[trial.Verdict]]]:
    for task, answer in trial.tried(tasks, jobs):
        assert task.mutant is not None
        if isinstance(answer, str):
            sys.exit(f"{task.mutant.name}: {answer}")
        yield task.mutant, answer


def _failed(verdicts: Sequence[trial.Verdict]) -> dict[str, str]:
    """What the clauses said that failed."""
    return {verdict.clause: _settled(verdict.said) for verdict in verdicts if verdict.outcome == "FAIL"}


def _not_passed(verdicts: Sequence[trial.Verdict]) -> set[str]:
    return {verdict.clause for verdict in verdicts if verdict.outcome not in ("PASS", "NOT_APPLICABLE")}


def _settled(said: str) -> str:
    """The words without what is different in every run."""
    text = _INSTANT.sub("…", _CHANGES_EACH_TIME.sub("…", said))
    return text if len(text) <= 200 else f"{text[:200].rsplit(' ', 1)[0]} …"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.matrix", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also mutants that have not changed since")
    parser.add_argument("names", nargs="*", help="names of mutants, areas, or patterns of them; none means all")
    parser.add_argument("--named", action="store_true", help="only with the clauses that they name")
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="of these alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--score", action="store_true", help="try nothing, and print what was seen before")
    given = parser.parse_args(arguments)
    if given.score:
        sys.stdout.write(f"{score(read())}\n")
        return 0
    backends = given.backend or BACKENDS
    if any(map(needs_postgres, backends)) and not is_held():
        return run_beside_postgres("tests.mutants.matrix", sys.argv[1:] if arguments is None else arguments)
    for backend in backends:
        seen = read()
        due = [mutant for mutant in chosen(backend, given.names) if given.all or not is_current(mutant, seen)]
        # In bites, so that an interrupted run has not been for nothing.
        for start in range(0, len(due), 20):
            write(read() | look(due[start : start + 20], given.jobs, whole=not given.named))
    publish()
    return 0


def publish() -> None:
    """Write the pages, without mutants that are no more."""
    known = {mutant.key for backend in BACKENDS for mutant in mutants_of(backend)}
    seen = {name: value for name, value in read().items() if name in known}
    write(seen)
    for path, text in pages(seen).items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{score(seen)}\n")


if __name__ == "__main__":
    sys.exit(main())
