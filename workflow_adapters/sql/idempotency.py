"""idempotency_keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.idempotency import IN_PROGRESS_MARKER, is_in_progress
from workflow_adapters.json_values import JsonValue, dumps, loads
from workflow_adapters.ports.idempotency import Idempotency
from workflow_adapters.records.idempotency import Acquired, IdempotencyFence, IdempotencyOutcome, InProgress, Replay
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.sql.columns import json_argument, ms_to_instant
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.results import ATTEMPTS, lost_race
from workflow_adapters.sql.statement import Operation, Statement

_IN_PROGRESS: Final = dumps(IN_PROGRESS_MARKER)
_MILLISECOND: Final = timedelta(milliseconds=1)


@enforces(Idempotency)
class SqlIdempotency(SqlPort):
    async def acquire_idempotency_key(
        self,
        key: str,
        command_type: str,
        now: datetime | None = None,
        stale_in_progress_after: timedelta | None = None,
    ) -> IdempotencyOutcome:
        at = now or self._database.now()
        fence = IdempotencyFence(id=new_id(), acquired_at=at)
        insert = Statement(
            """
            INSERT INTO @idempotency_keys (id, "createdAt", key, "commandType", result)
            VALUES ($1, $2::text::timestamp, $3, $4, $5::text::jsonb)
            ON CONFLICT (key, "commandType") DO NOTHING
            RETURNING id
            """,
            (fence.id, at, key, command_type, _IN_PROGRESS),
        )

        def operation() -> Operation[IdempotencyOutcome]:
            for _ in range(ATTEMPTS):
                if (yield insert):
                    return Acquired(fence=fence)
                held = yield from _held(key, command_type, at, stale_in_progress_after)
                if held is not None:
                    return held
            raise lost_race(f"the idempotency key {key!r}")

        return await self._database.write(operation, single=True)

    async def complete_idempotency_key(
        self, key: str, command_type: str, result: JsonValue, fence: IdempotencyFence | None = None
    ) -> JobAckOutcome:
        stored = json_argument(result, required=True)
        if fence is not None:
            return await self._acknowledge(
                Statement(
                    """
                    UPDATE @idempotency_keys
                    SET result = $6::text::jsonb
                    WHERE id = $1 AND "createdAt" = $2::text::timestamp AND key = $3 AND "commandType" = $4
                      AND result = $5::text::jsonb
                    RETURNING id
                    """,
                    (fence.id, fence.acquired_at, key, command_type, _IN_PROGRESS, stored),
                )
            )

        def operation() -> Operation[JobAckOutcome]:
            rows = yield Statement(
                """
                UPDATE @idempotency_keys
                SET result = $3::text::jsonb
                WHERE key = $1 AND "commandType" = $2
                RETURNING id
                """,
                (key, command_type, stored),
            )
            if not rows:
                raise NotFoundError("idempotency key", key)
            return JobAckOutcome.ACKNOWLEDGED

        return await self._database.write(operation, single=True)

    async def release_idempotency_key(
        self, key: str, command_type: str, fence: IdempotencyFence | None = None
    ) -> JobAckOutcome:
        if fence is not None:
            return await self._acknowledge(
                Statement(
                    """
                    DELETE FROM @idempotency_keys
                    WHERE id = $1 AND "createdAt" = $2::text::timestamp AND key = $3 AND "commandType" = $4
                      AND result = $5::text::jsonb
                    RETURNING id
                    """,
                    (fence.id, fence.acquired_at, key, command_type, _IN_PROGRESS),
                )
            )

        def operation() -> Operation[JobAckOutcome]:
            for _ in range(ATTEMPTS):
                rows = yield _key(key, command_type)
                if not rows or not is_in_progress(loads(str(rows[0][2]))):
                    return JobAckOutcome.ACKNOWLEDGED
                deleted = yield Statement(
                    "DELETE FROM @idempotency_keys WHERE id = $1 AND result = $2::text::jsonb RETURNING id",
                    (rows[0][0], rows[0][2]),
                )
                if deleted:
                    return JobAckOutcome.ACKNOWLEDGED
            raise lost_race(f"the idempotency key {key!r}")

        return await self._database.write(operation, single=True)

    async def _acknowledge(self, statement: Statement) -> JobAckOutcome:
        def operation() -> Operation[JobAckOutcome]:
            rows = yield statement
            return JobAckOutcome.ACKNOWLEDGED if rows else JobAckOutcome.SUPERSEDED

        return await self._database.write(operation, single=True)


def _key(key: str, command_type: str) -> Statement:
    return Statement(
        'SELECT id, @ms("createdAt"), result::text FROM @idempotency_keys WHERE key = $1 AND "commandType" = $2',
        (key, command_type),
    )


def _held(
    key: str, command_type: str, at: datetime, stale_after: timedelta | None
) -> Operation[IdempotencyOutcome | None]:
    """What a key that exists answers, having reclaimed it if it is stale; None when it has changed meanwhile."""
    rows = yield _key(key, command_type)
    if not rows:
        return None
    row_id, acquired_ms, result = str(rows[0][0]), int(rows[0][1] or 0), str(rows[0][2])
    if not is_in_progress(loads(result)):
        return Replay(loads(result))
    acquired_at = ms_to_instant(acquired_ms)
    if stale_after is None or at - acquired_at < stale_after:
        return InProgress()
    fence = IdempotencyFence(id=row_id, acquired_at=max(at, acquired_at + _MILLISECOND))
    reclaimed = yield Statement(
        """
        UPDATE @idempotency_keys
        SET "createdAt" = $4::text::timestamp
        WHERE id = $1 AND "createdAt" = $2::text::timestamp AND result = $3::text::jsonb
        RETURNING id
        """,
        (fence.id, acquired_at, result, fence.acquired_at),
    )
    return Acquired(fence=fence) if reclaimed else None
