"""What a purge would delete, counted so that nothing is lost and nobody waits for long.

Runs are looked up. The other tables have no such look in the port: their rows are deleted in a transaction of its own
for each table, counted, and rolled back.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import timedelta

from workflow_adapters.clock import SystemClock
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.records.status import PURGEABLE_STATUSES
from workflow_adapters.runtime.purger import Purger, Retention, time_before

MOST = 10_000
"""Rows of a table that are counted."""

SECONDS = 0.5
"""How long the count of a table may go on, a batch more at most: on SQLite every writer waits for it."""

BATCH = 500


@dataclass(slots=True)
class Due:
    """Rows per table; of the tables in `or_more` there may be more than were counted."""

    rows: Counter[str] = field(default_factory=Counter[str])
    or_more: set[str] = field(default_factory=set[str])


class _CountedError(Exception):
    """Rolls the transaction back."""


async def count_due(adapters: Adapters, retention: Retention, batch: int) -> Due:
    """Count what a purge by `retention` would delete now. Jobs that would go with their runs count as jobs."""
    due = Due()
    for table in fields(retention):
        age: timedelta | None = getattr(retention, table.name)
        if age is None:
            continue
        if table.name == "runs":
            rows = await _count_runs(adapters, age)
            complete = rows < MOST
        else:
            rows, complete = await _count_rows(adapters, Retention(**{table.name: age}), min(batch, BATCH))
        due.rows[table.name] = rows
        if not complete:
            due.or_more.add(table.name)
    return due


async def _count_runs(adapters: Adapters, age: timedelta) -> int:
    cutoff = time_before(SystemClock().now(), age)
    return len(await adapters.persistence.list_runs_for_purge(cutoff, sorted(PURGEABLE_STATUSES), MOST))


async def _count_rows(adapters: Adapters, retention: Retention, batch: int) -> tuple[int, bool]:
    rows, complete = 0, False
    until = time.monotonic() + SECONDS

    def count(table: str, deleted: int) -> None:
        nonlocal rows, complete
        rows += deleted
        complete = deleted < batch
        if rows >= MOST or time.monotonic() >= until:
            raise _CountedError

    try:
        async with adapters.transaction() as tx:
            await Purger(tx, retention, batch=batch).purge(count)
            raise _CountedError
    except _CountedError:
        return rows, complete
