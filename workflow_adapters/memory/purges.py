"""Retention: the oldest rows that may go, at most `limit` of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

from workflow_adapters.arguments import enforces
from workflow_adapters.memory.adapter import MemoryAdapter
from workflow_adapters.memory.table import Table
from workflow_adapters.ports.operations import Operations
from workflow_adapters.records.status import TERMINAL_STATUSES

R = TypeVar("R")


@enforces(Operations)
class MemoryPurges(MemoryAdapter):
    async def purge_jobs(self, finished_before: datetime, limit: int) -> int:
        async with self._session.write() as tables:
            ended = (
                (job.completed_at or job.updated_at, job.id, job)
                for job in tables.jobs
                if job.status in TERMINAL_STATUSES
            )
            return _purge(tables.jobs, ended, finished_before, limit)

    async def purge_outbox_events(self, published_before: datetime, limit: int) -> int:
        async with self._session.write() as tables:
            published = (
                (row.event.published_at, row.event.id, row)
                for row in tables.outbox
                if row.event.published_at is not None and row.event.dlq_at is None
            )
            return _purge(tables.outbox, published, published_before, limit)

    async def purge_dead_outbox_events(self, dead_before: datetime, limit: int) -> int:
        async with self._session.write() as tables:
            dead = ((row.event.dlq_at, row.event.id, row) for row in tables.outbox if row.event.dlq_at is not None)
            return _purge(tables.outbox, dead, dead_before, limit)

    async def purge_idempotency_keys(self, completed: bool, acquired_before: datetime, limit: int) -> int:
        async with self._session.write() as tables:
            keys = ((row.created_at, row.id, row) for row in tables.idempotency if row.in_progress is not completed)
            return _purge(tables.idempotency, keys, acquired_before, limit)

    async def purge_ai_calls(self, created_before: datetime, limit: int) -> int:
        async with self._session.write() as tables:
            calls = ((call.created_at, call.id, call) for call in tables.ai_calls)
            return _purge(tables.ai_calls, calls, created_before, limit)


def _purge(table: Table[R], candidates: Iterable[tuple[datetime, str, Any]], before: datetime, limit: int) -> int:
    old = sorted(candidate for candidate in candidates if candidate[0] < before)[:limit]
    for _, _, row in old:
        table.remove(row)
    return len(old)
