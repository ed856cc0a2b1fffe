"""Acknowledgements and heartbeats of many claims in one statement, each fenced on its own.

Jobs are locked one after the other in the order of their ids, so that two batches with jobs in common wait for one
another in one order. A heartbeat does not wait for a job that somebody else has locked: that would cost all the other
leases. The update is no join: whichever plan it had, it finds only what is locked already. The answer has the claims
that were not locked, which are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, LiteralString, TypeAlias

from workflow_adapters.arguments import enforces
from workflow_adapters.ports.job_queue import SupportsCompleteMany, SupportsHeartbeat
from workflow_adapters.postgres.job_port import JobPort
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.sql.columns import instant_to_ms
from workflow_adapters.sql.statement import Argument, Operation, Row, Statement

Claim: TypeAlias = tuple[str, JobAckFence]
ClaimKey: TypeAlias = tuple[str, int, int]
"""The job's id, and the claim's start in milliseconds and attempt."""

_CLAIM: Final[LiteralString] = """
    claim AS MATERIALIZED (
        SELECT *
        FROM unnest((SELECT $1::text[]), (SELECT $2::bigint[]), (SELECT $3::int[]))
            WITH ORDINALITY claim (id, started_ms, attempt, position)
    )"""

_STILL_HOLDS: Final[LiteralString] = """
            SELECT j.id
            FROM @job_queue j
            WHERE j.id = claim.id AND j.status::text = 'RUNNING'
              AND j."startedAt" = timestamp 'epoch' + claim.started_ms * interval '1 millisecond'
              AND j.attempt = claim.attempt"""

HELD: Final[LiteralString] = f"""{_CLAIM},
    held AS MATERIALIZED (
        SELECT job.id, claim.position
        FROM claim
        CROSS JOIN LATERAL ({_STILL_HOLDS}
            FOR NO KEY UPDATE
        ) job
    )"""

_HELD_AND_FREE: Final[LiteralString] = f"""{_CLAIM},
    held AS MATERIALIZED (
        SELECT job.id, claim.position
        FROM claim
        CROSS JOIN LATERAL ({_STILL_HOLDS}
            FOR NO KEY UPDATE SKIP LOCKED
        ) job
    )"""

LOST: Final[LiteralString] = """
    SELECT position FROM claim WHERE NOT EXISTS (SELECT FROM held WHERE held.position = claim.position)
    """

# A statement of its own, so that it sees what was committed since the other one began.
_GONE: Final[LiteralString] = f"""
    WITH {_CLAIM}
    SELECT position FROM claim WHERE NOT EXISTS ({_STILL_HOLDS}
    )
    """


@enforces(SupportsCompleteMany, SupportsHeartbeat)
class PostgresJobBatches(JobPort):
    async def complete_many(self, claims: Sequence[Claim]) -> list[JobAckOutcome]:
        keys = [claim_key(claim) for claim in claims]
        by_id = sorted_keys(keys)
        held = await self._write(
            Statement(
                f"""
                WITH {HELD},
                completed AS (
                    UPDATE @job_queue
                    SET status = 'COMPLETED', "completedAt" = clock.now, "updatedAt" = clock.now
                    FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
                    WHERE id = ANY (ARRAY(SELECT id FROM held))
                )
                {LOST}
                """,
                claim_arguments(by_id),
            ),
            by_id,
        )
        self._ended(job_id for job_id, _, _ in held)
        outcomes: list[JobAckOutcome] = []
        for key in keys:
            outcomes.append(_outcome(key in held))
            # A claim that is given twice finds its job completed the second time.
            held.discard(key)
        return outcomes

    async def heartbeat(self, claims: Sequence[Claim]) -> list[JobAckOutcome]:
        keys = [claim_key(claim) for claim in claims]
        by_id = sorted_keys(keys)
        held = await self._write(
            Statement(
                f"""
                WITH {_HELD_AND_FREE},
                refreshed AS (
                    UPDATE @job_queue
                    SET "lockedAt" = clock.now, "updatedAt" = clock.now
                    FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
                    WHERE id = ANY (ARRAY(SELECT id FROM held))
                )
                {LOST}
                """,
                claim_arguments(by_id),
            ),
            by_id,
            _GONE,
        )
        return [_outcome(key in held) for key in keys]

    async def _write(
        self, statement: Statement, keys: Sequence[ClaimKey], of_missed: LiteralString | None = None
    ) -> set[ClaimKey]:
        """Run a statement on sorted claims and say which still held. `of_missed` tells it of those not locked."""

        def operation() -> Operation[set[ClaimKey]]:
            missed = _at((yield statement), keys)
            if missed and of_missed is not None:
                missed = _at((yield Statement(of_missed, claim_arguments(missed))), missed)
            return set(keys).difference(missed)

        if not keys:
            return set()
        self._database.watch_plan(statement.text)
        return await self._database.write(operation, single=True)


def _at(rows: Sequence[Row], keys: Sequence[ClaimKey]) -> list[ClaimKey]:
    return [keys[int(row[0] or 0) - 1] for row in rows]


def claim_key(claim: Claim) -> ClaimKey:
    job_id, fence = claim
    return job_id, instant_to_ms(fence.started_at), fence.attempt


def sorted_keys(keys: Iterable[ClaimKey]) -> list[ClaimKey]:
    """Each once, by id: Python compares text bytewise, as UTF-8."""
    return sorted(set(keys))


def claim_arguments(keys: Sequence[ClaimKey]) -> tuple[Argument, ...]:
    """Ids, starts and attempts."""
    return [key[0] for key in keys], [key[1] for key in keys], [key[2] for key in keys]


def _outcome(held: bool) -> JobAckOutcome:
    return JobAckOutcome.ACKNOWLEDGED if held else JobAckOutcome.SUPERSEDED
