"""Claims: what is tried when, how often, and when the answer is that there is nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, cast

import anyio

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import BackendBusyError, WorkflowAdapterError
from workflow_adapters.inputs.runs import ServedDefinition, Serves
from workflow_adapters.ports.job_queue import JobQueue, SupportsDequeueMany
from workflow_adapters.postgres.claim_answer import ClaimAnswer, Seen, Unreadable
from workflow_adapters.postgres.claim_looks import Looks, looks_for
from workflow_adapters.postgres.connection import to_the_end
from workflow_adapters.postgres.job_batches import HELD, claim_arguments, claim_key, sorted_keys
from workflow_adapters.postgres.job_port import JobPort
from workflow_adapters.postgres.lanes import lane
from workflow_adapters.postgres.lookahead import Lookahead, Part
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.sql.results import none
from workflow_adapters.sql.statement import Statement

_LONGEST_TRY: Final = 2.0
_PATIENCE: Final = 8
_BATCH: Final = 250
# A window holds what other claimers may have locked besides what is wanted; each is a text, and a plan, of its own.
_WINDOWS: Final = (24, 320, 5000)
_LARGEST_OF_FIRST: Final = 8
_LONGEST_PAUSE: Final = 0.05


@enforces(JobQueue, SupportsDequeueMany)
class PostgresJobClaims(JobPort):
    async def dequeue(self, serves: Serves = None) -> DequeueResult | None:
        jobs = await self._claim(1, serves)
        return jobs[0] if jobs else None

    async def dequeue_many(self, limit: int, serves: Serves = None) -> list[DequeueResult]:
        return await self._claim(limit, serves)

    async def _claim(self, limit: int, serves: Serves) -> list[DequeueResult]:
        served = cast("tuple[ServedDefinition, ...] | None", serves)
        if served == ():
            return []
        taken: list[DequeueResult] = []
        try:
            while len(taken) < limit:
                wanted = min(limit - len(taken), _BATCH)
                answer = await self._claim_some(wanted, served)
                taken += answer.jobs
                for dead in answer.unreadable:
                    await self._fail_unreadable(dead)
                if len(answer.jobs) < wanted and not answer.again:
                    break
        except BackendBusyError:
            if not taken:
                raise
        except BaseException:
            if taken:
                await to_the_end(self._return(taken))
            raise
        return taken

    async def _claim_some(self, limit: int, serves: tuple[ServedDefinition, ...] | None) -> ClaimAnswer:
        facts = await self._database.facts()
        settings = self._settings
        looks = looks_for(self._database, settings.worker_id.value, serves, settings.fairness, owned=facts.owned)
        lookahead = settings.memory.of(serves)
        answer = await self._claim_seen(limit, looks, lookahead)
        if answer is None and looks.remembers and await lookahead.wait_for_look():
            answer = await self._claim_seen(limit, looks, lookahead)
        if answer is None:
            with lookahead.looking():
                answer = await _look(limit, looks, lookahead)
        if settings.fairness is not None:
            for job in answer.jobs:
                settings.memory.claimed(job.job_id, _part(job))
        return answer

    async def _claim_seen(self, limit: int, looks: Looks, lookahead: Lookahead) -> ClaimAnswer | None:
        """Claim what an earlier look saw; None where there is no such thing, or it is not to be had any more."""
        recall = lookahead.recall(limit) if looks.remembers else None
        if recall is None:
            return None
        answer = await looks.known(limit, recall)
        lookahead.used(recall, {job.job_id for job in answer.jobs}, map(_part, answer.jobs))
        return answer._replace(looks_again=True) if answer.took else None

    async def _fail_unreadable(self, dead: Unreadable) -> None:
        """Fail a dead job that the claim took for another."""
        statement = Statement(
            f"""
            WITH {HELD}
            UPDATE @job_queue
            SET status = 'FAILED', "completedAt" = clock.now, "lastError" = $4, "updatedAt" = clock.now
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock
            WHERE id = ANY (ARRAY(SELECT id FROM held))
            """,
            (*claim_arguments([claim_key((dead.id, dead.fence))]), f"dead job: {dead.why}"),
        )
        await self._database.write(lambda: none(statement), single=True)

    async def _return(self, jobs: Sequence[DequeueResult]) -> None:
        """Undo claims whose caller will never learn of them."""
        statement = Statement(
            f"""
            WITH {HELD}
            UPDATE @job_queue
            SET status = 'PENDING', attempt = attempt - 1, "workerId" = NULL, "lockedAt" = NULL,
                "updatedAt" = date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC')
            WHERE id = ANY (ARRAY(SELECT id FROM held))
            """,
            claim_arguments(sorted_keys(claim_key((job.job_id, job.fence)) for job in jobs)),
        )
        with suppress(WorkflowAdapterError):
            await self._database.write(lambda: none(statement), single=True)


async def _look(limit: int, looks: Looks, lookahead: Lookahead) -> ClaimAnswer:
    """Look until something was taken, or there is nothing that nobody else has locked."""
    first: Seen | None = None
    ends_at = anyio.current_time() + _LONGEST_TRY
    attempt = 0
    while True:
        # A batch leaves room for jobs that it could not lock. One job alone needs none.
        wanted = limit if attempt == 0 else 1
        answer = await looks.look(wanted, _window(limit, attempt), lookahead)
        lookahead.looked(answer)
        if answer.took or not answer.seen:
            return answer
        # Seen again, it is held by a claim that is still open. A turn is often taken, and soon over.
        patience = 1 if answer.seen[0].turn is None else _PATIENCE
        if answer.seen[0] == first and not answer.more and attempt >= patience:
            return answer
        if anyio.current_time() >= ends_at:
            raise BackendBusyError(f"jobs were claimed by others at each of {attempt + 1} attempts; try again")
        first = answer.seen[0]
        await anyio.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.0005 * 2 ** min(attempt, 7))))
        attempt += 1


def _window(limit: int, attempt: int) -> int:
    first = 0 if limit <= _LARGEST_OF_FIRST else 1
    return _WINDOWS[min(first + attempt, len(_WINDOWS) - 1)]


def _part(job: DequeueResult) -> Part:
    return lane(job.workflow_id, job.definition_version), job.group_key or ""
