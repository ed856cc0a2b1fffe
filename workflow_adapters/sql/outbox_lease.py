"""Leases on outbox events, kept in publishedAt: a marker far in the future, so that no column of ours is needed.

A leased event holds ``now + LEASE_OFFSET + lease``. A flusher that knows nothing of leases sees it as taken; every
reader of ours sees it as not published. A marker lies beyond ``now + LEASE_HORIZON``, where no instant of a publication
is. Each lease has a marker of its own, which is its token.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.sql.columns import instant_to_ms, ms_to_instant
from workflow_adapters.sql.statement import Row
from workflow_adapters.sql.tables import OUTBOX

LEASE_OFFSET: Final = timedelta(days=365_250)
"""1,000 years. The lease of a marker expires at ``marker - LEASE_OFFSET``."""

LEASE_HORIZON: Final = timedelta(days=182_625)
"""500 years. A publishedAt later than ``now + LEASE_HORIZON`` is a marker."""

_PUBLISHED_AT: Final = OUTBOX.columns.index(OUTBOX["published_at"])


def lease_token(marker: datetime) -> str:
    """The token of the lease with this marker."""
    return str(instant_to_ms(marker))


def lease_marker(token: str) -> datetime | None:
    """The marker of a lease by its token; None for what is no token."""
    if not (token.isascii() and token.isdecimal()):
        return None
    try:
        return ms_to_instant(int(token))
    except (OverflowError, ValueError):
        return None


def read_events(rows: Sequence[Row], now: datetime) -> list[OutboxRecord]:
    """The records of ``@outbox.columns``; a leased event has published_at None."""
    horizon = instant_to_ms(now + LEASE_HORIZON)
    return [OUTBOX.read(_without_marker(row, horizon)) for row in rows]


def _without_marker(row: Row, horizon: int) -> Row:
    published_at = row[_PUBLISHED_AT]
    if published_at is None or int(published_at) <= horizon:
        return row
    return [None if position == _PUBLISHED_AT else value for position, value in enumerate(row)]
