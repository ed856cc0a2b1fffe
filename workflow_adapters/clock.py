"""Where instants come from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

from workflow_adapters.errors import ConfigurationError


class Clock(Protocol):
    """Source of the stamps that an adapter writes: aware datetimes, kept to the millisecond (truncated)."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return truncate_to_ms(datetime.now(UTC))


def checked_clock(clock: Clock | None) -> Clock:
    """The clock of a bundle's option, the machine's when none was given; ConfigurationError for anything else."""
    if clock is None:
        return SystemClock()
    if isinstance(clock, type) or not callable(getattr(clock, "now", None)):
        raise ConfigurationError(f"clock: must have a method now() such as SystemClock(), not {clock!r}")
    return clock


class ManualClock:
    """A clock that stands still until it is told to move. For tests."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = truncate_to_ms(start.astimezone(UTC))

    def now(self) -> datetime:
        return self._now

    def advance(self, delta: timedelta) -> datetime:
        self._now = truncate_to_ms(self._now + delta)
        return self._now

    def set(self, instant: datetime) -> None:
        self._now = truncate_to_ms(instant.astimezone(UTC))


def truncate_to_ms(instant: datetime) -> datetime:
    """Drop what is finer than a millisecond: stored instants are truncated, never rounded, on every adapter."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
