"""Several adapters tried at the same time, each in a process of its own: two cores need half the time of one.

The processes are forks, since factories can not be sent to another process. Each is told which adapter is next and
tells of every clause as it is judged; one that finds nobody to tell ends, and removes what it has made.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import secrets
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, NamedTuple, NoReturn, cast

from conformance import servers
from conformance.backend import Spec
from conformance.choice import Choice
from conformance.outcome import Result
from conformance.report import Report
from conformance.runner import run_sync


class News(NamedTuple):
    """Of the adapter at `place`: the result of a clause, or at the end its report."""

    place: int
    what: Result | Report


class WorkerLostError(Exception):
    """A process that tried an adapter is gone, or the harness went wrong in it."""


_PR_SET_PDEATHSIG: Final = 1
_GONE: Final = "its process has ended before its time"


def how_many(specs: Sequence[Spec], jobs: int | None) -> int:
    """How many to try at once: `jobs`, or one for each core, where all of them may be tried side by side."""
    # A fork of a process with threads may wait for ever for a lock that one of those held.
    if not all(spec.side_by_side for spec in specs) or sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return max(1, min(jobs or len(os.sched_getaffinity(0)), len(specs)))


def side_by_side(specs: Sequence[Spec], choice: Choice, jobs: int) -> Iterator[News]:
    """Judge the adapters, `jobs` of them at a time, and tell of everything as it comes.

    Raises:
        WorkerLostError: one could not be judged to its end.
    """
    servers.share_as(secrets.token_hex())
    waiting = iter(range(len(specs)))
    with _workers(specs, choice, jobs) as lines:
        busy = {line: place for line in lines if (place := _hand_out(line, waiting)) is not None}
        while busy:
            for line in cast("list[Connection]", wait(list(busy))):
                what = _heard(line)
                if isinstance(what, str):
                    raise WorkerLostError(f"{specs[busy[line]].name}: {what}")
                yield News(busy[line], what)
                if isinstance(what, Report) and (place := _hand_out(line, waiting)) is not None:
                    busy[line] = place
                elif isinstance(what, Report):
                    del busy[line]


def _hand_out(line: Connection, waiting: Iterator[int]) -> int | None:
    place = next(waiting, None)
    line.send(place)
    return place


def _heard(line: Connection) -> Result | Report | str:
    try:
        return cast("Result | Report | str", line.recv())
    except (EOFError, ConnectionError):
        return _GONE


@contextlib.contextmanager
def _workers(specs: Sequence[Spec], choice: Choice, count: int) -> Generator[list[Connection]]:
    """Fork that many. Left early, they are told to stop, and waited for: they have things to remove."""
    fork = multiprocessing.get_context("fork")
    ours: list[Connection] = []
    processes: list[BaseProcess] = []
    try:
        for _ in range(count):
            here, there = fork.Pipe()
            ours.append(here)
            process = fork.Process(target=_work, args=(there, list(ours), specs, choice))
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


def _work(line: Connection, others: Sequence[Connection], specs: Sequence[Spec], choice: Choice) -> None:
    """Judge what one is told to until there is no more, or nobody listens."""
    for inherited in others:
        # Held here, too, the end of whoever forked us would go unnoticed.
        inherited.close()
    # What a terminal sends is for whoever forked us to act on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    # Killed, whoever forked us can tell us nothing; the system does, and does not wait for the clause at hand to end.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    try:
        with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
            while (place := cast("int | None", line.recv())) is not None:
                line.send(run_sync(specs[place], choice, on_result=lambda _, result: line.send(result)))
    except Exception:  # noqa: BLE001 - told where it can be read
        with contextlib.suppress(ConnectionError):
            line.send(f"the harness went wrong\n{traceback.format_exc()}")
    finally:
        servers.stop_server()


def _stop(number: int, _: object) -> NoReturn:
    # Once: what is to be removed is removed whoever is impatient.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
