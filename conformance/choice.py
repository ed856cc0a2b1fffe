"""What of a port is tried, and how."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

TIME_SCALE: Final = "CONFORMANCE_TIME_SCALE"

Loop: TypeAlias = Literal["asyncio", "trio"]
Profile: TypeAlias = Literal["quick", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How a run goes about it."""

    only: Sequence[str] = ()
    """Ids, or patterns of them such as ``JQ-FENCE-*``; empty means all."""
    profile: Profile = "full"
    """"quick" leaves out what needs many calls to be seen: great volumes, long races, cancellation at every await."""
    seed: int | None = None
    loop: Loop = "asyncio"
    dsn: str | None = None
    """Handed to the factory as ``env.dsn``, unless the spec needs a Postgres."""
    time_scale: float = field(default_factory=lambda: float(os.environ.get(TIME_SCALE, "1")))
    """Multiplies every clause's time limit, for slow machines; CONFORMANCE_TIME_SCALE, or 1."""

    def seeded(self) -> Choice:
        """With a seed drawn where none is chosen."""
        return self if self.seed is not None else replace(self, seed=secrets.randbelow(2**31))

    def again(self) -> tuple[str, ...]:
        """How `replay` is told of it, besides seed and loop; words ready for a shell."""
        scale = [] if self.time_scale == 1 else ["--time-scale", f"{self.time_scale:g}"]
        # Not as it was given: reports are published, and there may be a password in it.
        dsn = [] if self.dsn is None else ["--dsn", '"$DSN"']
        return (*scale, *dsn)


DEFAULT_CHOICE: Final = Choice()
