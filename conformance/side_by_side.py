"""Adapters tried in several processes at the same time: two cores need half the time of one.

The processes are forks, since factories can not be sent to another process. Each is handed some clauses of an adapter
at a time and tells of every one as it is judged; one that finds nobody to tell ends, and removes what it has made.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
from conformance.scratch import remove_abandoned
from conformance.shares import Later, Shares
from conformance.visiting import Idle, Told, visit


class News(NamedTuple):
    """Of the adapter at `place`: the result of a clause, or at the end its report."""

    place: int
    what: Result | Report


class WorkerLostError(Exception):
    """A process that tried an adapter is gone, or the harness went wrong in it."""


_END_SECONDS: Final = 60.0
"""More than closing an adapter that hangs may take."""
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
    with _workers(specs, choices, jobs) as workers:
        yield _news(specs, choices, shares, workers)


def _news(
    specs: Sequence[Spec], choices: Sequence[Choice], shares: Shares, workers: Mapping[Connection, int]
) -> Iterator[News]:
    for line, told in _conversations(workers, shares):
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


def _conversations(workers: Mapping[Connection, int], shares: Shares) -> Iterator[tuple[Connection, Told | str]]:
    """Give every worker something to do until all is done; what they say meanwhile, but for that they are idle."""
    talking, idle, leaving = set(workers), list(workers), set[Connection]()
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
        for line in _speaking(workers, talking):
            told = _heard(line)
            if isinstance(told, Idle):
                idle.append(line)
                continue
            yield line, told
            if line in leaving:
                # The one thing that is heard then: its farewell.
                talking.remove(line)


def _speaking(workers: Mapping[Connection, int], talking: AbstractSet[Connection]) -> Sequence[Connection]:
    """Those of whom there is something to hear, or who are gone."""
    # A line alone does not tell: what a worker has forked, and left behind, holds its end as well.
    ready = wait([*talking, *(workers[line] for line in talking)])
    return [line for line in talking if line in ready or workers[line] in ready]


def _say(line: Connection, what: object) -> None:
    # One that is gone is noticed by what is heard of it.
    with contextlib.suppress(ConnectionError):
        line.send(what)


def _heard(line: Connection) -> Told | Idle | str:
    try:
        return cast("Told | Idle | str", line.recv()) if line.poll() else _GONE
    except (EOFError, OSError):
        # OSError: killed in the midst of a message.
        return _GONE


@contextlib.contextmanager
def _workers(specs: Sequence[Spec], choices: Sequence[Choice], count: int) -> Generator[Mapping[Connection, int]]:
    """Fork that many; yields the lines to them, each with a descriptor that is readable when its process has ended.

    Left early, they are told to stop, and waited for: they have things to remove.
    """
    fork = multiprocessing.get_context("fork")
    ours: dict[Connection, int] = {}
    processes: list[BaseProcess] = []
    try:
        for _ in range(count):
            here, there = fork.Pipe()
            process = fork.Process(target=visit, args=(there, [here, *ours], specs, choices))
            process.start()
            processes.append(process)
            there.close()
            ours[here] = os.pidfd_open(process.ident or 0)
        yield ours
    except BaseException:
        _stop(processes, list(ours.values()))
        raise
    finally:
        for line, descriptor in ours.items():
            line.close()
            os.close(descriptor)
        for process in processes:
            process.join()


def _stop(processes: Sequence[BaseProcess], descriptors: Sequence[int]) -> None:
    """Have them end and remove what they have made; what one could not is removed for it."""
    # Once: what is to be removed is removed whoever is impatient.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for process in processes:
            process.terminate()
        until = time.monotonic() + _END_SECONDS
        for descriptor in descriptors:
            wait([descriptor], max(0.0, until - time.monotonic()))
        for process in processes:
            process.kill()
            process.join()
        remove_abandoned()
    finally:
        signal.signal(signal.SIGINT, before)
