"""What the commands of the command line do."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from conformance import permanent
from conformance.backend import Spec
from conformance.choice import Choice, Profile
from conformance.clause import Port
from conformance.contract import contract
from conformance.explaining import explained
from conformance.judging import judged
from conformance.outcome import ExitCode
from conformance.registry import load
from conformance.report import Report, worst
from conformance.reports.document import read_documents, write_document
from conformance.reports.html import to_html
from conformance.reports.junit import to_junit
from conformance.reports.markdown import to_markdown
from conformance.reports.terminal import terminal
from conformance.runner import UsageError
from conformance.targets import load_specs
from conformance.wording import counted

_PORTS: Final = {port.slug: port for port in Port}
_HALF_CHARACTERS: Final = "backslashreplace"
_POSTGRES: Final = "CONFORMANCE_POSTGRES_DSN"


def run(options: Namespace) -> ExitCode:
    _check_places(options.json, options.junit, options.markdown, options.html)
    specs = [spec for target in options.targets for spec in _load(target, options)]
    if (options.jobs or 1) > 1 and not all(spec.side_by_side for spec in specs):
        sys.stderr.write("conformance: one process, since not every adapter says side_by_side=True\n")
    show = terminal(plain=options.plain, trace=options.trace)
    reports = judged(specs, _choice(options, options.only, options.profile), show, options.jobs)
    if len(reports) > 1:
        show.summary(reports)
    if options.json is not None:
        write_document(reports, options.json)
    if options.junit is not None:
        options.junit.write_text(to_junit(reports), encoding="utf-8", errors=_HALF_CHARACTERS)
    _write_matrix(reports, options)
    return worst(reports)


def replay(options: Namespace) -> ExitCode:
    port = load().get(options.clause).port
    specs = [spec for spec in load_specs(options.target, port, options.declare) if spec.port is port]
    if len(specs) != 1:
        found = f"{counted(len(specs), 'adapter')} of {port.title}"
        raise UsageError(f"{options.target} has {found}; name one, as in module:name#adapter")
    show = terminal(plain=options.plain, trace=options.trace)
    return worst(judged(specs, _choice(options, [options.clause], "full"), show, jobs=1))


def list_clauses(options: Namespace) -> ExitCode:
    for clause in sorted(load().clauses(_PORTS.get(options.port)), key=lambda clause: clause.id):
        _say(f"{clause.id}  {clause.level:<6}  {clause.text}")
    return ExitCode.CONFORMANT


def explain(options: Namespace) -> ExitCode:
    _say(explained(load().get(options.clause)))
    return ExitCode.CONFORMANT


def matrix(options: Namespace) -> ExitCode:
    reports = read_documents(options.files)
    terminal(plain=options.plain).summary(reports)
    _write_matrix(reports, options)
    return worst(reports)


def docs(options: Namespace) -> ExitCode:
    text = contract(load())
    if options.output is None:
        _say(text.rstrip())
    else:
        options.output.write_text(text, encoding="utf-8")
    if options.ids is not None:
        permanent.write(permanent.updated(permanent.read(options.ids), load()), options.ids)
    return ExitCode.CONFORMANT


COMMANDS: Final[Mapping[str, Callable[[Namespace], ExitCode]]] = {
    "run": run,
    "replay": replay,
    "list": list_clauses,
    "explain": explain,
    "matrix": matrix,
    "docs": docs,
}


def _check_places(*files: Path | None) -> None:
    """A report that has no place is refused before the run that it would tell of."""
    for file in files:
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"{file} can not be written: there is no directory {file.parent}")
        if file is not None and file.is_dir():
            raise UsageError(f"{file} can not be written: it is a directory")


def _load(target: str, options: Namespace) -> list[Spec]:
    return load_specs(target, _PORTS.get(options.port), options.declare)


def _choice(options: Namespace, only: Sequence[str], profile: Profile) -> Choice:
    if options.dsn is not None:
        # Where the ladder to a Postgres begins; in this process alone.
        os.environ[_POSTGRES] = options.dsn
    return Choice(
        only=tuple(only),
        profile=profile,
        seed=options.seed,
        loop=options.loop,
        dsn=options.dsn,
        time_scale=options.time_scale,
    )


def _write_matrix(reports: Sequence[Report], options: Namespace) -> None:
    if options.markdown is not None:
        options.markdown.write_text(to_markdown(reports), encoding="utf-8", errors=_HALF_CHARACTERS)
    if options.html is not None:
        options.html.write_text(to_html(reports), encoding="utf-8", errors=_HALF_CHARACTERS)


def _say(text: str) -> None:
    print(text)  # noqa: T201 - a command line's output
