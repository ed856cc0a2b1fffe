"""``python -m conformance``: run, replay, list, explain, matrix, docs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from conformance.choice import DEFAULT_CHOICE
from conformance.clause import Port
from conformance.outcome import ExitCode

_PORTS: Final = {port.slug: port for port in Port}
_SIGINT: Final = 130
_SIGPIPE: Final = 141
_EXIT_CODES: Final = "Exit code: 0 conformant, 1 not conformant, 2 usage, 3 incomplete, 4 harness error."
_TARGET: Final = """package.module:name, or path/to/module.py:name, of a factory, a Spec, a list of Specs, or a
 generated test class; module:name#adapter chooses one of a list"""
_PROFILES: Final = "quick (the default) leaves out great volumes, long races, and cancellation at every await"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(arguments)
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        # What an adapter says may hold half a character.
        reconfigure(errors="backslashreplace")
    # Imported when it is clear that there is something to do: --help answers at once.
    from conformance.commands import COMMANDS
    from conformance.reports.document import DocumentError
    from conformance.runner import UsageError
    from conformance.side_by_side import WorkerLostError

    try:
        return int(COMMANDS[options.command](options))
    except (UsageError, DocumentError, LookupError) as error:
        print(f"conformance: {error.args[0]}", file=sys.stderr)  # noqa: T201 - a command line's output
        return int(ExitCode.USAGE)
    except WorkerLostError as error:
        print(f"conformance: {error}", file=sys.stderr)  # noqa: T201 - a command line's output
        return int(ExitCode.HARNESS_ERROR)
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is left must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except KeyboardInterrupt:
        print("conformance: interrupted; everything it made is removed", file=sys.stderr)  # noqa: T201 - a command line's output
        return _SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description="Judge adapters by the ports' contract.", epilog=_EXIT_CODES
    )
    commands = parser.add_subparsers(dest="command", required=True)
    _add_run(commands.add_parser("run", help="try every clause on adapters", epilog=_EXIT_CODES))
    _add_replay(commands.add_parser("replay", help="try one clause again, as a failure says", epilog=_EXIT_CODES))
    listing = commands.add_parser("list", help="list the clauses")
    listing.add_argument("--port", choices=_PORTS, help="of one port only")
    explain = commands.add_parser("explain", help="say everything about one clause")
    explain.add_argument("clause", type=str.upper, metavar="ID")
    matrix = commands.add_parser("matrix", help="put the JSON reports of several runs side by side")
    matrix.add_argument("files", nargs="+", type=Path, metavar="REPORT.json")
    _add_output(matrix)
    docs = commands.add_parser("docs", help="write the contract as Markdown, from the clauses")
    docs.add_argument("--output", type=Path, metavar="FILE", help="there instead of standard output")
    docs.add_argument("--ids", type=Path, metavar="FILE", help="bring the list of permanent ids up to date, too")
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("targets", nargs="+", metavar="TARGET", help=_TARGET)
    run.add_argument("--port", choices=_PORTS, help="the port of a factory, where that cannot be told; or one of many")
    run.add_argument("--declare", action="append", default=[], metavar="CAPABILITY", help="promised by a bare factory")
    run.add_argument("--only", action="append", default=[], metavar="ID", help="these clauses; patterns: 'JQ-FENCE-*'")
    run.add_argument("--profile", choices=("quick", "full"), default="quick", help=_PROFILES)
    run.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="processes that share the clauses of adapters that allow it; one for each core",
    )
    run.add_argument("--json", type=Path, metavar="FILE", help="write the report that all others can be made from")
    run.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    _add_common(run)
    _add_output(run)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, not {text!r}")
    return int(text)


def _add_replay(replay: argparse.ArgumentParser) -> None:
    replay.add_argument("target", metavar="TARGET", help=_TARGET)
    replay.add_argument("clause", type=str.upper, metavar="ID")
    replay.add_argument("--declare", action="append", default=[], metavar="CAPABILITY")
    _add_common(replay)
    replay.add_argument("--plain", action="store_true", help="no colours")


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=int, help="of everything random; a run says which it had")
    command.add_argument("--loop", choices=("asyncio", "trio"), default="asyncio")
    command.add_argument("--dsn", help="what the factory finds in env.dsn; the Postgres to make databases in")
    command.add_argument(
        "--time-scale", type=float, default=DEFAULT_CHOICE.time_scale, metavar="FACTOR", help="of all time limits"
    )
    command.add_argument("--trace", action="store_true", help="show stack traces below failures")


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write the matrix as Markdown")
    command.add_argument("--html", type=Path, metavar="FILE", help="write the matrix as one HTML file")
    command.add_argument("--plain", action="store_true", help="no colours and no progress")
