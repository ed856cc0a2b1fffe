"""What of a port is tried, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Loop: TypeAlias = Literal["asyncio", "trio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How a run goes about it."""

    only: Sequence[str] = ()
    """Ids, or patterns of them such as ``JQ-FENCE-*``; empty means all."""
    seed: int | None = None
    loop: Loop = "asyncio"
    dsn: str | None = None
    """Handed to the factory as ``env.dsn``, unless the spec needs a Postgres."""
    time_scale: float = 1.0
    """Multiplies every clause's time limit, for slow machines."""


DEFAULT_CHOICE: Final = Choice()
