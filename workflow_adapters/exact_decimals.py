"""Sums of costs that do not depend on their order: of the shortest decimal forms of the doubles, added exactly."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal, Inexact
from typing import Final

# The digits of the largest double, of the smallest, and those that a count of rows can add.
_EXACT: Final = Context(prec=309 + 324 + 17 + 20, traps=[Inexact])


def add_exactly(total: Decimal, value: float | str) -> Decimal:
    """`total` plus a double, or plus the text of a sum."""
    return _EXACT.add(total, Decimal(value if isinstance(value, str) else repr(value)))


def total_of(values: Iterable[float | str]) -> float:
    """One float for doubles, or for the texts of sums; it is rounded only here, so that 0.1 + 0.2 is 0.3."""
    total = Decimal(0)
    for value in values:
        total = add_exactly(total, value)
    return float(total)
