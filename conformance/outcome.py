"""Outcomes of clauses, and what stands behind one that is not met."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Outcome(StrEnum):
    """What is known about one clause after a run."""

    PASS = "PASS"
    FAIL = "FAIL"
    WARN = "WARN"
    """A SHOULD or MAY that is not met, or a capability that is there and not declared."""
    NOT_APPLICABLE = "NOT_APPLICABLE"
    """It needs what the adapter honestly does not declare."""
    NOT_TESTED = "NOT_TESTED"
    """It could not be tried, or a clause it builds on is not met."""
    WAIVED = "WAIVED"
    """A declared gap: tried, and not met, as declared."""
    HARNESS_ERROR = "HARNESS_ERROR"
    """The harness went wrong; nothing is known about the adapter."""


class ExitCode(IntEnum):
    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    INCOMPLETE = 3
    HARNESS_ERROR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call of a history: times in seconds since the clause began; `ended` is None for one that never came back."""

    instance: str
    call: str
    started: float
    ended: float | None
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a clause is not met, in the port's words."""

    expected: str
    observed: str
    contradiction: str
    history: tuple[Event, ...] = ()
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of one clause on one adapter. `reason` says why it was not simply tried and judged."""

    clause_id: str
    outcome: Outcome
    seconds: float = 0.0
    reason: str | None = None
    failure: Failure | None = None
    checks: int = field(default=0)
    """How many expectations were looked at."""


BUILDS_ON = "builds on "
"""How the reason of a clause begins that was not tried because of another."""


class ClauseFailedError(AssertionError):
    """An expectation of a clause is not met."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.contradiction)
        self.failure = failure


class ClauseSkippedError(Exception):
    """A clause found that it can not be judged here."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class HarnessError(Exception):
    """A mistake in a clause or in the harness itself."""
