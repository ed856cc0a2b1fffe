"""Adapters tried in several processes at the same time: two cores need half the time of one.

The processes are forks, since factories can not be sent to another process. Each is handed some clauses of an adapter
at a time and tells of every one as it is judged; one that finds nobody to tell ends, and removes what it has made.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import secrets
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, NamedTuple, cast

from conformance import servers
from conformance.backend import Spec
from conformance.choice import Choice
from conformance.clause import Clause
from conformance.conclusion import concluded
from conformance.outcome import Result
from conformance.registry import load
from conformance.report import Report
from conformance.shares import Shares
from conformance.visiting import Idle, Told, visit


class News(NamedTuple):
    """Of the adapter at `place`: the result of a clause, or at the end its report."""

    place: int
    what: Result | Report


class WorkerLostError(Exception):
    """A process that tried an adapter is gone, or the harness went wrong in it."""


_GONE: Final = "its process has ended before its time"


def how_many(specs: Sequence[Spec], shares: int, jobs: int | None) -> int:
    """How many processes are to try so many shares: `jobs`, or one for each core; one where forks are no good."""
    # A fork of a process with threads may wait for ever for a lock that one of those held.
    if not all(spec.side_by_side for spec in specs) or sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return max(1, min(jobs or len(os.sched_getaffinity(0)), shares))


def side_by_side(
    specs: Sequence[Spec], choice: Choice, chosen: Sequence[Sequence[Clause]], jobs: int
) -> Iterator[News]:
    """Try the clauses `chosen` for each adapter in `jobs` processes, at most one a share; tell of all as it comes.

    Raises:
        WorkerLostError: one could not be judged to its end.
    """
    servers.share_as(secrets.token_hex())
    shares = Shares(chosen)
    choices = [choice.seeded() for _ in specs]

    def report(place: int) -> Report:
        results = shares.results(place)
        tried = [(clause, results[clause.id]) for clause in chosen[place]]
        return concluded(specs[place], choices[place], tried, shares.farewells(place), shares.watch(place), load())

    with _workers(specs, choices, jobs) as lines:
        for line, what in _conversations(lines, shares):
            if isinstance(what, str):
                raise WorkerLostError(f"{specs[shares.place_of(line)].name}: {what}")
            shares.note(what.place, what.what)
            if isinstance(what.what, Result):
                yield News(what.place, what.what)
            elif shares.is_done(what.place):
                yield News(what.place, report(what.place))


def _conversations(lines: Sequence[Connection], shares: Shares) -> Iterator[tuple[Connection, Told | str]]:
    """Give every worker something to do until all is done; what they say meanwhile, but for that they are idle."""
    for line in lines:
        line.send(shares.hand_out(line))
    talking = set(lines)
    leaving: set[Connection] = set()
    while talking:
        for line in cast("list[Connection]", wait(list(talking))):
            what = _heard(line)
            if isinstance(what, Idle):
                share = shares.hand_out(line)
                if share is None:
                    leaving.add(line)
                _say(line, share)
                continue
            yield line, what
            if line in leaving:
                # The one thing that is heard then: its farewell.
                talking.remove(line)


def _say(line: Connection, what: object) -> None:
    # One that is gone is noticed by what is heard of it.
    with contextlib.suppress(ConnectionError):
        line.send(what)


def _heard(line: Connection) -> Told | Idle | str:
    try:
        return cast("Told | Idle | str", line.recv())
    except (EOFError, ConnectionError):
        return _GONE


@contextlib.contextmanager
def _workers(specs: Sequence[Spec], choices: Sequence[Choice], count: int) -> Generator[list[Connection]]:
    """Fork that many. Left early, they are told to stop, and waited for: they have things to remove."""
    fork = multiprocessing.get_context("fork")
    ours: list[Connection] = []
    processes: list[BaseProcess] = []
    try:
        for _ in range(count):
            here, there = fork.Pipe()
            ours.append(here)
            process = fork.Process(target=visit, args=(there, list(ours), specs, choices))
            process.start()
            processes.append(process)
            there.close()
        yield ours
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    finally:
        for line in ours:
            line.close()
        for process in processes:
            process.join()
