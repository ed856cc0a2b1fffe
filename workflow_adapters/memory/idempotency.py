"""idempotency_keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ids import new_id
from workflow_adapters.json_values import JsonValue
from workflow_adapters.memory.adapter import MILLISECOND, MemoryAdapter, later
from workflow_adapters.memory.rows import IdempotencyRow, copied
from workflow_adapters.ports.idempotency import Idempotency
from workflow_adapters.records.idempotency import Acquired, IdempotencyFence, IdempotencyOutcome, InProgress, Replay
from workflow_adapters.records.status import JobAckOutcome


@enforces(Idempotency)
class MemoryIdempotency(MemoryAdapter):
    async def acquire_idempotency_key(
        self,
        key: str,
        command_type: str,
        now: datetime | None = None,
        stale_in_progress_after: timedelta | None = None,
    ) -> IdempotencyOutcome:
        async with self._session.write() as tables:
            now = now or self._session.now()
            row = tables.idempotency.get((key, command_type))
            if row is None:
                row = IdempotencyRow(
                    id=new_id(), created_at=now, key=key, command_type=command_type, in_progress=True, result=None
                )
            elif not row.in_progress:
                return Replay(copied(row.result))
            elif stale_in_progress_after is None or now - row.created_at < stale_in_progress_after:
                return InProgress()
            else:
                row = replace(row, created_at=max(now, later(row.created_at, MILLISECOND)))
            tables.idempotency.put(row)
            return Acquired(fence=_fence(row))

    async def complete_idempotency_key(
        self, key: str, command_type: str, result: JsonValue, fence: IdempotencyFence | None = None
    ) -> JobAckOutcome:
        async with self._session.write() as tables:
            row = tables.idempotency.get((key, command_type))
            if fence is not None and not _holds(row, fence):
                return JobAckOutcome.SUPERSEDED
            if row is None:
                raise NotFoundError("idempotency key", key)
            tables.idempotency.put(replace(row, in_progress=False, result=copied(result)))
            return JobAckOutcome.ACKNOWLEDGED

    async def release_idempotency_key(
        self, key: str, command_type: str, fence: IdempotencyFence | None = None
    ) -> JobAckOutcome:
        async with self._session.write() as tables:
            row = tables.idempotency.get((key, command_type))
            if fence is not None and not _holds(row, fence):
                return JobAckOutcome.SUPERSEDED
            if row is not None and row.in_progress:
                tables.idempotency.remove(row)
            return JobAckOutcome.ACKNOWLEDGED


def _fence(row: IdempotencyRow) -> IdempotencyFence:
    return IdempotencyFence(id=row.id, acquired_at=row.created_at)


def _holds(row: IdempotencyRow | None, fence: IdempotencyFence) -> bool:
    return row is not None and row.in_progress and _fence(row) == fence
