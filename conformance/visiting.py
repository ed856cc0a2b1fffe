"""A process that tries clauses it is handed, on whichever adapter they are for, and tells of each."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final, NamedTuple, NoReturn, cast

from conformance import servers
from conformance.backend import Spec
from conformance.choice import Choice
from conformance.conclusion import Farewell
from conformance.outcome import Result
from conformance.registry import load
from conformance.session import Session
from conformance.shares import Share

_PR_SET_PDEATHSIG: Final = 1


class Told(NamedTuple):
    """Something about the adapter at `place`."""

    place: int
    what: Result | Farewell


@dataclass(frozen=True, slots=True)
class Idle:
    """The share is tried: what is next?"""


def visit(line: Connection, others: Sequence[Connection], specs: Sequence[Spec], choices: Sequence[Choice]) -> None:
    """Try every `Share` that comes over the line until None comes, or nobody is left to tell; then end the process.

    Sent are `Told` and `Idle`, and a text when the harness goes wrong.
    """
    try:
        _visit(line, others, specs, choices)
    except Exception:  # noqa: BLE001 - cleaning up has failed, when nobody listens any more
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            # Not by way of what waits for threads and processes that an adapter has left behind.
            os._exit(0)


def _visit(line: Connection, others: Sequence[Connection], specs: Sequence[Spec], choices: Sequence[Choice]) -> None:
    for inherited in others:
        # Held here, too, the end of whoever forked us would go unnoticed.
        inherited.close()
    # What a terminal sends is for whoever forked us to act on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    # Killed, whoever forked us can tell us nothing; the system does, and does not wait for the clause at hand to end.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    visitor = _Visitor(line, specs, choices)
    try:
        with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
            while (share := cast("Share | None", line.recv())) is not None:
                visitor.take(share)
            visitor.leave()
    except Exception:  # noqa: BLE001 - told where it can be read
        with contextlib.suppress(ConnectionError):
            line.send(f"the harness went wrong\n{traceback.format_exc()}")
    finally:
        # Whoever is impatient now would leave behind what is about to be removed.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            visitor.give_up()
        finally:
            servers.stop_server()


class _Visitor:
    """Has one adapter open at a time."""

    def __init__(self, line: Connection, specs: Sequence[Spec], choices: Sequence[Choice]) -> None:
        self._line = line
        self._specs = specs
        self._choices = choices
        self._open: tuple[int, Session] | None = None

    def take(self, share: Share) -> None:
        session = self._session(share.place)
        session.learn(share.known)
        for id in share.ids:  # noqa: A001 - a clause's
            self._line.send(Told(share.place, session.check(id)))
        self._line.send(Idle())

    def leave(self) -> None:
        """Close the adapter that is open, and tell what is known then."""
        if self._open is not None:
            place, session = self._open
            farewell = session.conclude()
            # Not before: interrupted in the midst of it, it is closed once more.
            self._open = None
            self._line.send(Told(place, farewell))

    def give_up(self) -> None:
        """Close the adapter that is open, if one still is."""
        if self._open is not None:
            self._open[1].close()

    def _session(self, place: int) -> Session:
        if self._open is None or self._open[0] != place:
            self.leave()
            self._open = place, Session(self._specs[place], load(), self._choices[place])
        return self._open[1]


def _stop(number: int, _: object) -> NoReturn:
    # Once: what is to be removed is removed whoever is impatient.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
