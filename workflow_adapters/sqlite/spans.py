"""Instants some time from now, as milliseconds, no further than datetimes reach."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from workflow_adapters.sql.columns import instant_to_ms

_FIRST: Final = instant_to_ms(datetime.min.replace(tzinfo=UTC))
_LAST: Final = instant_to_ms(datetime.max.replace(tzinfo=UTC))


def later_ms(now: datetime, ms: int) -> int:
    """`ms` after now."""
    return min(max(instant_to_ms(now) + ms, _FIRST), _LAST)


def earlier_ms(now: datetime, span: timedelta) -> int:
    """`span` before now."""
    return later_ms(now, -(span // timedelta(milliseconds=1)))
