"""Leases on outbox events, kept in publishedAt: a marker far in the future, so that no column of ours is needed.

A leased event holds ``now + LEASE_OFFSET + lease``. A flusher that knows nothing of leases sees it as taken; every
reader of ours sees it as not published. A marker lies in a window on the far side of LEASE_HORIZON, where no instant of
a publication is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.sql.columns import instant_to_ms
from workflow_adapters.sql.statement import Row
from workflow_adapters.sql.tables import OUTBOX

LEASE_OFFSET: Final = timedelta(days=365_250)
"""1,000 years. The lease of a marker expires at ``marker - LEASE_OFFSET``."""

LEASE_HORIZON: Final = timedelta(days=182_625)
"""500 years. A publishedAt later than ``now + LEASE_HORIZON`` is a marker."""

_PUBLISHED_AT: Final = OUTBOX.columns.index(OUTBOX["published_at"])


def read_events(rows: Sequence[Row], now: datetime) -> list[OutboxRecord]:
    """The records of ``@outbox.columns``; a leased event has published_at None."""
    horizon = instant_to_ms(now) + LEASE_HORIZON // timedelta(milliseconds=1)
    return [OUTBOX.read(_without_marker(row, horizon)) for row in rows]


def _without_marker(row: Row, horizon: int) -> Row:
    published_at = row[_PUBLISHED_AT]
    if published_at is None or int(published_at) <= horizon:
        return row
    return [None if position == _PUBLISHED_AT else value for position, value in enumerate(row)]
