"""Which clauses a quick run leaves for a full one: those that need many calls to see what they are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from conformance.choice import Profile
from conformance.clause import Clause, Evidence

VOLUME: Final = frozenset(
    {
        "AI-BATCH-10",
        "AI-LOG-08",
        "JQ-ENQ-11",
        "JQ-STALE-13",
        "WP-ANN-12",
        "WP-FLUSH-12",
        "WP-OUT-09",
    }
)
"""Thousands of rows, or of ids, in one call."""

ROUNDS: Final = frozenset(
    {
        "AI-BATCH-09",
        "AI-FLUSH-01",
        "JQ-FAIR-21",
        "JQ-FAIR-22",
        "JQ-RACE-04",
        "JQ-RACE-07",
        "JQ-RACE-08",
        "JQ-RACE-10",
    }
)
"""A race run over and over, because it shows only now and then. Each has a shorter neighbour that every run tries."""

EVERYWHERE: Final = frozenset(
    {
        "AI-CANCELLATION-02",
        "JQ-CANCELLATION-04",
        "SL-CANCELLATION-02",
        "WP-CANCELLATION-04",
        "WP-CANCELLATION-06",
    }
)
"""Every method of the port, interrupted wherever it awaits."""

LONG: Final = VOLUME | ROUNDS | EVERYWHERE


def is_quick(clause: Clause) -> bool:
    """Whether a quick run tries the clause."""
    return clause.evidence is Evidence.EXAMPLE and clause.id not in LONG


def of_profile(clauses: Sequence[Clause], profile: Profile) -> list[Clause]:
    """Those that the profile tries."""
    if profile == "full":
        return list(clauses)
    return [clause for clause in clauses if is_quick(clause)]
