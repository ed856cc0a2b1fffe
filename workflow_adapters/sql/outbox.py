"""outbox_events: what both databases do alike. Appends, claims and leases are each database's own."""

from __future__ import annotations

from collections.abc import Sequence

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.outbox import DEFAULT_OUTBOX_LIMIT
from workflow_adapters.ports.outbox import Outbox, SupportsOutboxLease
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.outbox_lease import LEASE_HORIZON, LEASE_OFFSET, lease_marker, read_events
from workflow_adapters.sql.results import count, none
from workflow_adapters.sql.statement import Operation, Statement


@enforces(Outbox, SupportsOutboxLease)
class SqlOutbox(SqlPort):
    async def get_unpublished_outbox_events(self, limit: int = DEFAULT_OUTBOX_LIMIT) -> list[OutboxRecord]:
        now = self._database.now()

        def operation() -> Operation[list[OutboxRecord]]:
            # Two branches, so that an index on unpublished events serves the first. An event whose lease has expired
            # is unpublished again. Each branch reads its rows whole: joined to them by id, 5,000 events were compared
            # with 5,000 wherever statistics were from when the table was small.
            rows = yield Statement(
                """
                SELECT unpublished.*
                FROM (
                    SELECT * FROM (
                        SELECT @outbox.columns(e)
                        FROM @outbox_events e
                        WHERE e."publishedAt" IS NULL AND e."dlqAt" IS NULL
                        ORDER BY e."workflowRunId" COLLATE "C", e.sequence
                        LIMIT $1::int
                    ) AS untouched
                    UNION ALL
                    SELECT @outbox.columns(e)
                    FROM @outbox_events e
                    WHERE e."publishedAt" > $2::text::timestamp AND e."publishedAt" <= $3::text::timestamp
                      AND e."dlqAt" IS NULL
                ) AS unpublished
                ORDER BY unpublished."workflowRunId" COLLATE "C", unpublished.sequence
                LIMIT $1::int
                """,
                (limit, now + LEASE_HORIZON, now + LEASE_OFFSET),
            )
            return read_events(rows, now)

        return await self._database.read(operation)

    async def release_outbox_events(self, ids: Sequence[str]) -> None:
        if ids:
            # The rows are locked in one order, so that two calls for the same events never deadlock.
            statement = Statement(
                """
                WITH events AS MATERIALIZED (
                    SELECT id FROM @outbox_events WHERE id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE
                )
                UPDATE @outbox_events
                SET "publishedAt" = NULL
                WHERE id IN (SELECT id FROM events)
                """,
                (ids,),
            )
            await self._database.write(lambda: none(statement), single=True)

    async def mark_outbox_events_published(self, ids: Sequence[str]) -> None:
        if ids:
            statement = Statement(
                """
                WITH events AS MATERIALIZED (
                    SELECT id FROM @outbox_events WHERE id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE
                )
                UPDATE @outbox_events
                SET "publishedAt" = $2::text::timestamp
                WHERE id IN (SELECT id FROM events)
                """,
                (ids, self._database.now()),
            )
            await self._database.write(lambda: none(statement), single=True)

    async def increment_outbox_retry_count(self, id: str) -> int:
        def operation() -> Operation[int]:
            rows = yield Statement(
                """
                UPDATE @outbox_events
                SET "retryCount" = "retryCount" + 1
                WHERE id = $1
                RETURNING "retryCount"
                """,
                (id,),
            )
            if not rows:
                raise NotFoundError("outbox event", id)
            return int(rows[0][0] or 0)

        return await self._database.write(operation, single=True)

    async def move_outbox_event_to_dlq(self, id: str) -> None:
        def operation() -> Operation[None]:
            rows = yield Statement(
                'UPDATE @outbox_events SET "dlqAt" = $2::text::timestamp WHERE id = $1 RETURNING id',
                (id, self._database.now()),
            )
            if not rows:
                raise NotFoundError("outbox event", id)

        await self._database.write(operation, single=True)

    async def replay_dlq_events(self, max_events: int) -> int:
        statement = Statement(
            """
            WITH dead AS MATERIALIZED (
                SELECT id FROM @outbox_events
                WHERE "dlqAt" IS NOT NULL
                ORDER BY "dlqAt", id COLLATE "C"
                LIMIT $1::int
                FOR NO KEY UPDATE SKIP LOCKED
            )
            UPDATE @outbox_events
            SET "dlqAt" = NULL, "publishedAt" = NULL, "retryCount" = 0
            WHERE id IN (SELECT id FROM dead)
            RETURNING id
            """,
            (max_events,),
        )
        return await self._database.write(lambda: count(statement), single=True)

    async def confirm_outbox_events(self, token: str, ids: Sequence[str]) -> int:
        now = self._database.now()
        marker = lease_marker(token)
        if not ids or marker is None or marker <= now + LEASE_OFFSET:
            return 0
        statement = Statement(
            """
            WITH events AS MATERIALIZED (
                SELECT id FROM @outbox_events
                WHERE id = ANY($1::text[]) AND "publishedAt" = $2::text::timestamp
                ORDER BY id
                FOR NO KEY UPDATE
            )
            UPDATE @outbox_events
            SET "publishedAt" = $3::text::timestamp
            WHERE id IN (SELECT id FROM events)
            RETURNING id
            """,
            (ids, marker, now),
        )
        return await self._database.write(lambda: count(statement), single=True)

    async def release_outbox_lease(self, token: str) -> None:
        marker = lease_marker(token)
        if marker is not None:
            statement = Statement(
                """
                WITH events AS MATERIALIZED (
                    SELECT id FROM @outbox_events
                    WHERE "publishedAt" = $1::text::timestamp
                    ORDER BY id
                    FOR NO KEY UPDATE
                )
                UPDATE @outbox_events
                SET "publishedAt" = NULL
                WHERE id IN (SELECT id FROM events)
                """,
                (marker,),
            )
            await self._database.write(lambda: none(statement), single=True)
