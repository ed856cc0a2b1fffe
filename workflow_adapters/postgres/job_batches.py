"""Acknowledgements and heartbeats of many claims in one statement, each fenced on its own.

Jobs are locked one after the other in the order of their ids, so that two batches with jobs in common wait for one
another in one order. The update is no join: whichever plan it had, it finds only what is locked already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, LiteralString, TypeAlias

from workflow_adapters.arguments import enforces
from workflow_adapters.ports.job_queue import SupportsCompleteMany, SupportsHeartbeat
from workflow_adapters.postgres.job_port import JobPort
from workflow_adapters.postgres.style import instant_text
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.sql.columns import instant_to_ms
from workflow_adapters.sql.statement import Argument, Operation, Statement

Claim: TypeAlias = tuple[str, JobAckFence]

HELD: Final[LiteralString] = """
    held AS MATERIALIZED (
        SELECT job.id
        FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::int[])) claim (id, started_at, attempt)
        CROSS JOIN LATERAL (
            SELECT j.id
            FROM @job_queue j
            WHERE j.id = claim.id AND j.status::text = 'RUNNING'
              AND j."startedAt" = claim.started_at::timestamp AND j.attempt = claim.attempt
            FOR NO KEY UPDATE
        ) job
    )"""


@enforces(SupportsCompleteMany, SupportsHeartbeat)
class PostgresJobBatches(JobPort):
    async def complete_many(self, claims: Sequence[Claim]) -> list[JobAckOutcome]:
        held = await self._write(
            Statement(
                f"""
                WITH {HELD}
                UPDATE @job_queue
                SET status = 'COMPLETED', "completedAt" = clock.now, "updatedAt" = clock.now
                FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
                WHERE id = ANY (ARRAY(SELECT id FROM held))
                RETURNING id, @ms("startedAt"), attempt
                """,
                claim_arguments(claims),
            )
        )
        self._ended(job_id for job_id, _, _ in held)
        outcomes: list[JobAckOutcome] = []
        for claim in claims:
            outcomes.append(_outcome(_key(claim) in held))
            # A claim that is given twice finds its job completed the second time.
            held.discard(_key(claim))
        return outcomes

    async def heartbeat(self, claims: Sequence[Claim]) -> list[JobAckOutcome]:
        held = await self._write(
            Statement(
                f"""
                WITH {HELD}
                UPDATE @job_queue
                SET "lockedAt" = clock.now, "updatedAt" = clock.now
                FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
                WHERE id = ANY (ARRAY(SELECT id FROM held))
                RETURNING id, @ms("startedAt"), attempt
                """,
                claim_arguments(claims),
            )
        )
        return [_outcome(_key(claim) in held) for claim in claims]

    async def _write(self, statement: Statement) -> set[tuple[str, int, int]]:
        """Run a statement and say of which claims it found the jobs: id, start and attempt."""

        def operation() -> Operation[set[tuple[str, int, int]]]:
            rows = yield statement
            return {(str(job_id), int(started or 0), int(attempt or 0)) for job_id, started, attempt in rows}

        if not statement.args[0]:
            return set()
        self._database.watch_plan(statement.text)
        return await self._database.write(operation, single=True)


def claim_arguments(claims: Sequence[Claim]) -> tuple[Argument, ...]:
    """Ids, starts and attempts of claims, by id."""
    by_id = sorted(set(claims), key=lambda claim: claim[0].encode())
    starts = [instant_text(fence.started_at) for _, fence in by_id]
    return [job_id for job_id, _ in by_id], starts, [fence.attempt for _, fence in by_id]


def _key(claim: Claim) -> tuple[str, int, int]:
    job_id, fence = claim
    return job_id, instant_to_ms(fence.started_at), fence.attempt


def _outcome(held: bool) -> JobAckOutcome:
    return JobAckOutcome.ACKNOWLEDGED if held else JobAckOutcome.SUPERSEDED
