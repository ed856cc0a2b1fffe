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
from conformance.conclusion import concluded
from conformance.outcome import Result
from conformance.registry import load
from conformance.report import Report
from conformance.shares import Later, Shares
from conformance.visiting import Idle, Told, visit


class News(NamedTuple):
    """Of the adapter at `place`: the result of a clause, or at the end its report."""

    place: int
    what: Result | Report


class WorkerLostError(Exception):
    """A process that tried an adapter is gone, or the harness went wrong in it."""


_GONE: Final = "its process has ended before its time"


def how_many(specs: Sequence[Spec], shares: Shares, jobs: int | None) -> int:
    """How many processes are to try the shares: `jobs`, or one for each core; one where forks are no good."""
    # A fork of a process with threads may wait for ever for a lock that one of those held.
    if not all(spec.side_by_side for spec in specs) or sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return max(1, min(jobs or len(os.sched_getaffinity(0)), len(shares)))


@contextlib.contextmanager
def side_by_side(specs: Sequence[Spec], choice: Choice, shares: Shares, jobs: int) -> Generator[Iterator[News]]:
    """Try the shares in `jobs` processes, at most one for each share; yield what they tell, as it comes.

    They are forked at once, and gone at the end of the block. What is yielded raises `WorkerLostError` when an adapter
    could not be judged to its end.
    """
    servers.share_as(secrets.token_hex())
    choices = [choice.seeded() for _ in specs]
    with _workers(specs, choices, jobs) as lines:
        yield _news(specs, choices, shares, lines)


def _news(
    specs: Sequence[Spec], choices: Sequence[Choice], shares: Shares, lines: Sequence[Connection]
) -> Iterator[News]:
    for line, told in _conversations(lines, shares):
        if isinstance(told, str):
            at = shares.whereabouts(line)
            raise WorkerLostError(f"{'no adapter yet' if at is None else specs[at].name}: {told}")
        place, what = told
        shares.note(line, place, what)
        if isinstance(what, Result):
            yield News(place, what)
        elif shares.is_done(place):
            farewells, watch = shares.farewells(place), shares.watch(place)
            report = concluded(specs[place], choices[place], shares.tried(place), farewells, watch, load())
            yield News(place, report)


def _conversations(lines: Sequence[Connection], shares: Shares) -> Iterator[tuple[Connection, Told | str]]:
    """Give every worker something to do until all is done; what they say meanwhile, but for that they are idle."""
    talking, idle, leaving = set(lines), list(lines), set[Connection]()
    while talking:
        for line in [*idle]:
            share = shares.hand_out(line)
            if isinstance(share, Later):
                continue
            idle.remove(line)
            _say(line, share)
            if share is None and shares.whereabouts(line) is None:
                talking.remove(line)
            elif share is None:
                leaving.add(line)
        for line in cast("list[Connection]", wait(list(talking))):
            told = _heard(line)
            if isinstance(told, Idle):
                idle.append(line)
                continue
            yield line, told
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
    except (EOFError, OSError):
        # OSError: killed in the midst of a message.
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
