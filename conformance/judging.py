"""Judging adapters and showing how it goes: in order, whether they are tried one after the other or side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.backend import Spec
from conformance.choice import Choice
from conformance.clause import Clause
from conformance.outcome import Result
from conformance.registry import load
from conformance.report import Report
from conformance.reports.terminal import Terminal
from conformance.runner import check_spec, choose, run_sync
from conformance.servers import stop_server
from conformance.shares import Shares
from conformance.side_by_side import News, how_many, side_by_side


def judged(specs: Sequence[Spec], choice: Choice, show: Terminal, jobs: int | None) -> list[Report]:
    """The reports, one for each adapter; UsageError before anything is tried when one can not be judged at all."""
    known = load()
    for spec in specs:
        check_spec(spec, known)
    chosen = [choose(spec, choice, known) for spec in specs]
    shares = Shares(chosen)
    try:
        if (count := how_many(specs, shares, jobs)) > 1:
            with side_by_side(specs, choice, shares, count) as arriving:
                return _shown(specs, chosen, arriving, show)
        return _one_after_the_other(specs, chosen, choice, show)
    finally:
        stop_server()


def _one_after_the_other(
    specs: Sequence[Spec], chosen: Sequence[Sequence[Clause]], choice: Choice, show: Terminal
) -> list[Report]:
    reports: list[Report] = []
    for spec, clauses in zip(specs, chosen, strict=True):
        show.begin(spec, len(clauses))
        reports.append(run_sync(spec, choice, on_result=show.result))
        show.end(reports[-1])
    return reports


def _shown(
    specs: Sequence[Spec], chosen: Sequence[Sequence[Clause]], arriving: Iterator[News], show: Terminal
) -> list[Report]:
    """Show each adapter as if it were the only one: what comes of others meanwhile is kept until it is their turn."""
    kept: list[list[Result | Report]] = [[] for _ in specs]
    reports: list[Report] = []
    for place, (spec, clauses) in enumerate(zip(specs, chosen, strict=True)):
        show.begin(spec, len(clauses))
        for what in _about(place, kept, arriving):
            if isinstance(what, Report):
                show.end(what)
                reports.append(what)
            else:
                show.result(load().get(what.clause_id), what)
    return reports


def _about(place: int, kept: list[list[Result | Report]], arriving: Iterator[News]) -> Iterator[Result | Report]:
    """What is known of one adapter, and then what comes, up to its report."""
    while True:
        while kept[place]:
            what = kept[place].pop(0)
            yield what
            if isinstance(what, Report):
                return
        news = next(arriving)
        kept[news.place].append(news.what)
