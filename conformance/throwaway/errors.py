"""What goes wrong when a throwaway Postgres is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Refusal(NamedTuple):
    """A rung of the ladder that gave no server, and why."""

    rung: str
    why: str

    def __str__(self) -> str:
        return f"{self.rung}: {self.why}"


class ThrowawayError(Exception):
    """A throwaway Postgres does not do what was asked of it. The message names the cause and never a password."""


class UnavailableError(ThrowawayError):
    """One rung has no server to give. The ladder goes on to the next."""


class NotAvailableError(ThrowawayError):
    """No rung gave a server. `reasons` has one entry for each that was tried, in the ladder's order."""

    def __init__(self, reasons: Sequence[Refusal]) -> None:
        super().__init__("no throwaway Postgres here:" + "".join(f"\n  {reason}" for reason in reasons))
        self.reasons = tuple(reasons)

    def __reduce__(self) -> tuple[type[NotAvailableError], tuple[tuple[Refusal, ...]]]:
        return type(self), (self.reasons,)


class ForeignDatabaseError(ThrowawayError):
    """The database is none that this server made as a throwaway; nothing in it was changed."""
