"""The operations that delete what is old: each one statement, at most `limit` rows, the oldest first, no waiting."""

from __future__ import annotations

from datetime import datetime

from workflow_adapters.arguments import enforces
from workflow_adapters.ports.operations import Operations
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.outbox_lease import LEASE_HORIZON
from workflow_adapters.sql.results import count
from workflow_adapters.sql.statement import Statement


@enforces(Operations)
class SqlRetention(SqlPort):
    async def purge_jobs(self, finished_before: datetime, limit: int) -> int:
        return await self._purge(self._database.dialect.purge_jobs(finished_before, limit))

    async def purge_outbox_events(self, published_before: datetime, limit: int) -> int:
        return await self._purge(
            Statement(
                """
                WITH old AS MATERIALIZED (
                    SELECT id
                    FROM @outbox_events
                    WHERE "publishedAt" < $1::text::timestamp AND "publishedAt" <= $2::text::timestamp
                      AND "dlqAt" IS NULL
                    ORDER BY "publishedAt", id COLLATE "C"
                    LIMIT $3::int
                    FOR UPDATE SKIP LOCKED
                )
                DELETE FROM @outbox_events
                WHERE id IN (SELECT id FROM old)
                RETURNING id
                """,
                (published_before, self._database.now() + LEASE_HORIZON, limit),
            )
        )

    async def purge_dead_outbox_events(self, dead_before: datetime, limit: int) -> int:
        return await self._purge(
            Statement(
                """
                WITH old AS MATERIALIZED (
                    SELECT id
                    FROM @outbox_events
                    WHERE "dlqAt" < $1::text::timestamp
                    ORDER BY "dlqAt", id COLLATE "C"
                    LIMIT $2::int
                    FOR UPDATE SKIP LOCKED
                )
                DELETE FROM @outbox_events
                WHERE id IN (SELECT id FROM old)
                RETURNING id
                """,
                (dead_before, limit),
            )
        )

    async def purge_idempotency_keys(self, completed: bool, acquired_before: datetime, limit: int) -> int:
        return await self._purge(self._database.dialect.purge_idempotency_keys(completed, acquired_before, limit))

    async def purge_ai_calls(self, created_before: datetime, limit: int) -> int:
        return await self._purge(
            Statement(
                """
                WITH old AS MATERIALIZED (
                    SELECT id
                    FROM @ai_calls
                    WHERE "createdAt" < $1::text::timestamp
                    ORDER BY "createdAt", id COLLATE "C"
                    LIMIT $2::int
                    FOR UPDATE SKIP LOCKED
                )
                DELETE FROM @ai_calls
                WHERE id IN (SELECT id FROM old)
                RETURNING id
                """,
                (created_before, limit),
            )
        )

    async def _purge(self, statement: Statement) -> int:
        return await self._database.write(lambda: count(statement), single=True)
