"""``python -m conformance.throwaway``: which rungs give a server on this machine, and why the others do not.

``run [--rung RUNG] [--variable NAME] -- COMMAND`` runs a command with a server's DSN in its environment.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence

from conformance.throwaway.errors import NotAvailableError, ThrowawayError
from conformance.throwaway.given import VARIABLE
from conformance.throwaway.ladder import VARIABLE as RUNG_VARIABLE
from conformance.throwaway.ladder import every_rung
from conformance.throwaway.start import blocking_postgres

_NOTHING_WORKS = 1
_USAGE = 2
_CANNOT_RUN = 127


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.throwaway", description=__doc__)
    commands = parser.add_subparsers(dest="action")
    commands.add_parser("list", help="start a server on each rung and say what came of it (the default)")
    run = commands.add_parser("run", help="run a command with a throwaway server")
    run.add_argument(
        "--rung", help="a rung (embedded), a version (16) or both (embedded-18); else the first that works"
    )
    run.add_argument("--variable", default=VARIABLE, help="the environment variable for the DSN (default: %(default)s)")
    run.add_argument("command", nargs="+", metavar="COMMAND", help="after --")
    options = parser.parse_args(arguments)
    try:
        if options.action == "run":
            return _run(options.command, options.rung, options.variable)
        return _list()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (ThrowawayError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE if isinstance(error, ValueError) else _NOTHING_WORKS


def _list() -> int:
    found = 0
    for rung in every_rung():
        began = time.monotonic()
        try:
            with blocking_postgres(rung.name) as server:
                found += 1
                what = f"PostgreSQL {server.version}, ready in {time.monotonic() - began:.1f} s"
        except NotAvailableError as error:
            what = f"no: {error.reasons[0].why}"
        sys.stdout.write(f"{rung.name:<18} {what}\n")
        sys.stdout.flush()
    return 0 if found else _NOTHING_WORKS


def _run(command: Sequence[str], rung: str | None, variable: str) -> int:
    with blocking_postgres(rung) as server:
        sys.stderr.write(f"{variable}: {server.rung}, PostgreSQL {server.version}\n")
        try:
            process = subprocess.Popen(command, env=_environment(variable, server.dsn))
        except OSError as error:
            sys.stderr.write(f"{command[0]}: {error.strerror}\n")
            return _CANNOT_RUN
        with _passed_on_to(process):
            code = process.wait()
    return 128 - code if code < 0 else code


def _environment(variable: str, dsn: str) -> dict[str, str]:
    # A rung that was chosen is this server's; the command is to take the server, not to choose once more.
    return {name: value for name, value in os.environ.items() if name != RUNG_VARIABLE} | {variable: dsn}


@contextlib.contextmanager
def _passed_on_to(process: subprocess.Popen[bytes]) -> Generator[None]:
    """The command decides when it is over; the server stays until then."""

    def pass_on(number: int, _: object) -> None:
        # The terminal sends SIGINT to the command by itself.
        if number != signal.SIGINT:
            process.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, pass_on) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
