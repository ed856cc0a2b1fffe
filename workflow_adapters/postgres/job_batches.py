"""Acknowledgements and heartbeats of many claims in one statement, each fenced on its own.

Jobs are locked in the order of their ids, so that two batches with jobs in common wait for one another in one order:
the arguments are sorted, and ``LIMIT (SELECT …)`` has the server expect a single row of them, for which it looks up one
job after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from workflow_adapters.arguments import enforces
from workflow_adapters.ports.job_queue import SupportsCompleteMany, SupportsHeartbeat
from workflow_adapters.postgres.job_port import JobPort
from workflow_adapters.postgres.style import instant_text
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.sql.statement import Argument, Operation, Statement

Claim: TypeAlias = tuple[str, JobAckFence]


@enforces(SupportsCompleteMany, SupportsHeartbeat)
class PostgresJobBatches(JobPort):
    async def complete_many(self, claims: Sequence[Claim]) -> list[JobAckOutcome]:
        by_id = _by_id(claims)
        statement = Statement(
            """
            UPDATE @job_queue job
            SET status = 'COMPLETED', "completedAt" = clock.now, "updatedAt" = clock.now
            FROM (
                SELECT * FROM unnest($1::text[], $2::text[], $3::int[]) WITH ORDINALITY LIMIT (SELECT $4::int)
            ) claim (id, started_at, attempt, position),
            (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE job.id = claim.id AND job.status::text = 'RUNNING'
              AND job."startedAt" = claim.started_at::timestamp AND job.attempt = claim.attempt
            RETURNING claim.position
            """,
            claim_arguments(by_id),
        )
        held = await self._write(statement, by_id)
        self._ended(job_id for job_id, _ in held)
        outcomes: list[JobAckOutcome] = []
        for claim in claims:
            outcomes.append(_outcome(claim in held))
            # A claim that is given twice finds its job completed the second time.
            held.discard(claim)
        return outcomes

    async def heartbeat(self, claims: Sequence[Claim]) -> list[JobAckOutcome]:
        by_id = _by_id(claims)
        statement = Statement(
            """
            UPDATE @job_queue job
            SET "lockedAt" = clock.now, "updatedAt" = clock.now
            FROM (
                SELECT * FROM unnest($1::text[], $2::text[], $3::int[]) WITH ORDINALITY LIMIT (SELECT $4::int)
            ) claim (id, started_at, attempt, position),
            (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE job.id = claim.id AND job.status::text = 'RUNNING'
              AND job."startedAt" = claim.started_at::timestamp AND job.attempt = claim.attempt
            RETURNING claim.position
            """,
            claim_arguments(by_id),
        )
        held = await self._write(statement, by_id)
        return [_outcome(claim in held) for claim in claims]

    async def _write(self, statement: Statement, claims: Sequence[Claim]) -> set[Claim]:
        """Run a statement on claims and say which still held."""
        if not claims:
            return set()

        def operation() -> Operation[set[Claim]]:
            rows = yield statement
            return {claims[int(row[0] or 0) - 1] for row in rows}

        self._database.watch_plan(statement.text)
        return await self._database.write(operation, single=True)


def claim_arguments(claims: Sequence[Claim]) -> tuple[Argument, ...]:
    """Ids, starts and attempts, and how many there are."""
    starts = [instant_text(fence.started_at) for _, fence in claims]
    return [job_id for job_id, _ in claims], starts, [fence.attempt for _, fence in claims], len(claims)


def _by_id(claims: Sequence[Claim]) -> list[Claim]:
    return sorted(set(claims), key=lambda claim: claim[0].encode())


def _outcome(held: bool) -> JobAckOutcome:
    return JobAckOutcome.ACKNOWLEDGED if held else JobAckOutcome.SUPERSEDED
