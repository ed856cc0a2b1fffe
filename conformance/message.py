"""How a failure reads: what is broken, why that matters, what was seen, what to look at, how to see it again."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from conformance.outcome import Event, Failure, Result
from conformance.report import ClauseText, Report

_WIDTH: Final = 100
_BAR: Final = 24


def failure_text(clause: ClauseText, result: Result, replay: str, *, trace: bool = False) -> str:
    """The whole account of a clause that is not met, as plain text."""
    lines = [f"{result.outcome} {clause.id} ({clause.level})", *_wrapped(clause.text, "  ")]
    if result.reason is not None:
        lines += ["", *_wrapped(f"Reason: {result.reason}", "  ")]
    if result.failure is not None:
        lines += ["", *_wrapped(f"Why it matters: {clause.why}", "  "), *_of_failure(result.failure)]
        lines += ["", "  If it fails, check"]
        lines += [line for hint in clause.hints for line in _wrapped(hint, "    - ", "      ")]
    lines += ["", f"  Again: {replay}"]
    if trace and result.failure is not None and result.failure.trace is not None:
        lines += ["", textwrap.indent(result.failure.trace.rstrip(), "  ")]
    return "\n".join(lines)


def account(report: Report, clause: ClauseText, result: Result, *, trace: bool = False) -> str:
    """`failure_text` of a result of the report."""
    return failure_text(clause, result, replay_of(report, clause.id), trace=trace)


def replay_of(report: Report, clause_id: str) -> str:
    """What to type to try a clause of the report again, just as it was."""
    return replay_command(report.subject.location, clause_id, report.seed, report.loop, report.again)


def replay_command(location: str, clause_id: str, seed: int, loop: str, again: Sequence[str] = ()) -> str:
    """What to type to try one clause again, just as it was; `again` is what else was asked for, ready for a shell."""
    other_loop = [] if loop == "asyncio" else ["--loop", loop]
    words = ["python -m conformance replay", location, clause_id, "--seed", str(seed), *other_loop, *again]
    return " ".join(words)


def _of_failure(failure: Failure) -> Iterable[str]:
    yield ""
    yield from _wrapped(failure.expected, "  Expected  ", " " * 12)
    yield from _wrapped(failure.observed, "  Observed  ", " " * 12)
    if failure.history:
        yield ""
        yield "  What happened"
        yield from timeline(failure.history)
    yield ""
    yield from _wrapped(failure.contradiction, "  ")


def timeline(events: Sequence[Event]) -> Iterable[str]:
    """A line for each call; where calls overlap, a bar shows when each of them ran."""
    instances = max(len(event.instance) for event in events)
    bars = _bars(events) if _overlap(events) else [""] * len(events)
    for event, bar in zip(events, bars, strict=True):
        head = f"    {event.instance:<{instances}}  {bar}"
        yield from _wrapped(f"{event.call} -> {event.answer}", head, " " * (len(head) + 2))


def _overlap(events: Sequence[Event]) -> bool:
    return any(earlier.ended is None or later.started < earlier.ended for earlier, later in pairwise(events))


def _bars(events: Sequence[Event]) -> list[str]:
    # Bars show the order of beginnings and ends, not durations: a race of microseconds reads like one of seconds.
    instants = sorted(
        {event.started for event in events} | {event.ended for event in events if event.ended is not None}
    )
    step = max(1, (_BAR - 1) / max(1, len(instants) - 1)) if len(instants) > 1 else 1
    places = {instant: min(_BAR - 1, round(index * step)) for index, instant in enumerate(instants)}
    bars: list[str] = []
    for event in events:
        first, last = places[event.started], _BAR - 1 if event.ended is None else places[event.ended]
        body = "[" + "=" * max(0, last - first - 1) + (">" if event.ended is None else "]") if last > first else "|"
        bars.append((" " * first + body).ljust(_BAR) + "  ")
    return bars


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    indent = first if rest is None else rest
    width = max(_WIDTH, len(indent) + 40)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
