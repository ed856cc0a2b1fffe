"""The acknowledgements of the job queue, each one conditional statement.

``+status`` keeps SQLite from meeting each claim with all RUNNING jobs: the id alone is to find the row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ports.job_queue import JobQueue, SupportsCompleteMany, SupportsDefer, SupportsHeartbeat
from workflow_adapters.queue_settings import QueueSettings
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.sql.columns import instant_to_ms
from workflow_adapters.sql.database import Database, SqlPort
from workflow_adapters.sql.statement import Argument, Operation, Statement
from workflow_adapters.sqlite.job_signal import JobSignal
from workflow_adapters.sqlite.spans import later_ms
from workflow_adapters.validation import instant


@enforces(JobQueue, SupportsDefer, SupportsCompleteMany, SupportsHeartbeat)
class SqliteJobAcks(SqlPort):
    def __init__(self, database: Database, settings: QueueSettings, signal: JobSignal) -> None:
        super().__init__(database)
        self._settings = settings
        self._signal = signal

    async def complete(self, job_id: str, fence: JobAckFence | None = None) -> JobAckOutcome:
        return await self._acknowledge(
            job_id,
            fence,
            Statement(
                """
                UPDATE @job_queue
                SET status = 'COMPLETED', "completedAt" = $4, "updatedAt" = $4
                WHERE id = $1 AND ($2 IS NULL OR (status = 'RUNNING' AND "startedAt" = $2 AND attempt = $3))
                RETURNING id
                """,
                (job_id, *_held(fence), self._database.now()),
            ),
        )

    async def suspend(self, job_id: str, next_poll_at: datetime, fence: JobAckFence | None = None) -> JobAckOutcome:
        return await self._acknowledge(
            job_id,
            fence,
            Statement(
                """
                UPDATE @job_queue
                SET status = 'SUSPENDED', "nextPollAt" = $5, "workerId" = NULL, "lockedAt" = NULL, "updatedAt" = $4
                WHERE id = $1 AND ($2 IS NULL OR (status = 'RUNNING' AND "startedAt" = $2 AND attempt = $3))
                RETURNING id
                """,
                (job_id, *_held(fence), self._database.now(), next_poll_at),
            ),
        )

    async def fail(
        self, job_id: str, error: str, should_retry: bool = False, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        now = self._database.now()

        def operation() -> Operation[JobAckOutcome]:
            # The attempt decides how long the job waits; a fence holds only for the very attempt it names.
            attempt = fence.attempt if fence is not None else (yield from _attempt_of(job_id))
            due_at = later_ms(now, self._settings.backoff.delay_ms(attempt))
            rows = yield Statement(
                """
                UPDATE @job_queue
                SET status = CASE WHEN $5 AND attempt < "maxAttempts" THEN 'PENDING' ELSE 'FAILED' END,
                    "nextPollAt" = CASE WHEN $5 AND attempt < "maxAttempts" THEN $6 ELSE "nextPollAt" END,
                    "workerId" = CASE WHEN $5 AND attempt < "maxAttempts" THEN NULL ELSE "workerId" END,
                    "lockedAt" = CASE WHEN $5 AND attempt < "maxAttempts" THEN NULL ELSE "lockedAt" END,
                    "completedAt" = CASE WHEN $5 AND attempt < "maxAttempts" THEN "completedAt" ELSE $4 END,
                    "lastError" = $7,
                    "updatedAt" = $4
                WHERE id = $1 AND ($2 IS NULL OR (status = 'RUNNING' AND "startedAt" = $2 AND attempt = $3))
                RETURNING id
                """,
                (job_id, *_held(fence), now, should_retry, due_at, error),
            )
            return _outcome(job_id, fence, written=bool(rows))

        outcome = await self._database.write(operation, single=fence is not None)
        self._signal.changed()
        return outcome

    async def touch_job(self, job_id: str) -> None:
        def operation() -> Operation[None]:
            # The clock is read under the lock, whose wait would else be a part of the lease.
            yield Statement(
                """
                UPDATE @job_queue SET "lockedAt" = $2, "updatedAt" = $2 WHERE id = $1 AND status = 'RUNNING'
                """,
                (job_id, self._database.now()),
            )

        await self._database.write(operation, single=True)

    async def defer(
        self, job_id: str, next_poll_at: datetime, reason: str, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        outcome = await self._acknowledge(
            job_id,
            fence,
            Statement(
                """
                UPDATE @job_queue
                SET status = 'PENDING', attempt = max(attempt - 1, 0), "nextPollAt" = $5, "lastError" = $6,
                    "workerId" = NULL, "lockedAt" = NULL, "updatedAt" = $4
                WHERE id = $1 AND ($2 IS NULL OR (status = 'RUNNING' AND "startedAt" = $2 AND attempt = $3))
                RETURNING id
                """,
                (job_id, *_held(fence), self._database.now(), next_poll_at, reason),
            ),
        )
        self._signal.changed()
        return outcome

    async def complete_many(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        """A claim that is listed twice can be completed once."""
        statement = Statement(
            """
            UPDATE @job_queue
            SET status = 'COMPLETED', "completedAt" = $2, "updatedAt" = $2
            FROM (
                SELECT
                    json_extract(value, '$[0]') AS job_id, json_extract(value, '$[1]') AS started_at,
                    json_extract(value, '$[2]') AS claimed_attempt
                FROM json_each($1)
            ) AS claim
            WHERE id = claim.job_id AND +status = 'RUNNING' AND "startedAt" = claim.started_at
              AND attempt = claim.claimed_attempt
            RETURNING id, "startedAt", attempt
            """,
            (_listed(claims), self._database.now()),
        )
        return await self._acknowledge_many(claims, lambda: statement, once=True)

    async def heartbeat(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        def statement() -> Statement:
            return Statement(
                """
                UPDATE @job_queue
                SET "lockedAt" = $2, "updatedAt" = $2
                FROM (
                    SELECT
                        json_extract(value, '$[0]') AS job_id, json_extract(value, '$[1]') AS started_at,
                        json_extract(value, '$[2]') AS claimed_attempt
                    FROM json_each($1)
                ) AS claim
                WHERE id = claim.job_id AND +status = 'RUNNING' AND "startedAt" = claim.started_at
                  AND attempt = claim.claimed_attempt
                RETURNING id, "startedAt", attempt
                """,
                (_listed(claims), self._database.now()),
            )

        return await self._acknowledge_many(claims, statement, once=False)

    async def _acknowledge(self, job_id: str, fence: JobAckFence | None, statement: Statement) -> JobAckOutcome:
        def operation() -> Operation[JobAckOutcome]:
            rows = yield statement
            return _outcome(job_id, fence, written=bool(rows))

        return await self._database.write(operation, single=True)

    async def _acknowledge_many(
        self, claims: Sequence[tuple[str, JobAckFence]], statement: Callable[[], Statement], *, once: bool
    ) -> list[JobAckOutcome]:
        """`statement` is made under the lock, so that the clock it reads does not count the wait for it."""
        if not claims:
            return []

        def operation() -> Operation[list[JobAckOutcome]]:
            rows = yield statement()
            held = {tuple(row) for row in rows}
            outcomes: list[JobAckOutcome] = []
            for job_id, fence in claims:
                claim = (job_id, *_held(fence))
                outcomes.append(JobAckOutcome.ACKNOWLEDGED if claim in held else JobAckOutcome.SUPERSEDED)
                if once:
                    held.discard(claim)
            return outcomes

        return await self._database.write(operation, single=True)


def _held(fence: JobAckFence | None) -> tuple[Argument, Argument]:
    if fence is None:
        return None, None
    return instant_to_ms(instant("fence.started_at", fence.started_at)), fence.attempt


def _listed(claims: Sequence[tuple[str, JobAckFence]]) -> str:
    return json.dumps([(job_id, *_held(fence)) for job_id, fence in claims], ensure_ascii=False)


def _attempt_of(job_id: str) -> Operation[int]:
    rows = yield Statement("SELECT attempt FROM @job_queue WHERE id = $1", (job_id,))
    return int(rows[0][0] or 0) if rows else 0


def _outcome(job_id: str, fence: JobAckFence | None, *, written: bool) -> JobAckOutcome:
    if written:
        return JobAckOutcome.ACKNOWLEDGED
    if fence is None:
        raise NotFoundError("job", job_id)
    return JobAckOutcome.SUPERSEDED
