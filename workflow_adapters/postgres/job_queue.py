"""job_queue: enqueueing, listing and waiting. Claims, acknowledgements and sweeps are in files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from workflow_adapters.arguments import enforces
from workflow_adapters.conveniences import JobQueueConveniences
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.job_queue import DEFAULT_MAX_ATTEMPTS, EnqueueJobInput
from workflow_adapters.json_values import dumps
from workflow_adapters.ports.job_queue import JobQueue, SupportsFairness, SupportsWaiting, SupportsWorkerAdoption
from workflow_adapters.postgres.job_acks import PostgresJobAcks
from workflow_adapters.postgres.job_batches import PostgresJobBatches
from workflow_adapters.postgres.job_claims import PostgresJobClaims
from workflow_adapters.postgres.job_sweeps import PostgresJobSweeps
from workflow_adapters.postgres.next_due import next_due_job
from workflow_adapters.postgres.style import instant_text
from workflow_adapters.records.job_queue import JobRecord
from workflow_adapters.sql.results import every, none
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sql.tables import JOB


@enforces(JobQueue, SupportsWorkerAdoption, SupportsFairness, SupportsWaiting)
class PostgresJobQueue(PostgresJobAcks, PostgresJobBatches, PostgresJobClaims, PostgresJobSweeps, JobQueueConveniences):
    async def enqueue_parallel(self, jobs: Sequence[EnqueueJobInput]) -> list[str]:
        if not jobs:
            return []
        survivors = _survivors(jobs)
        # Sorted by the unique key, bytewise: rows are locked in that order, which a function's rows keep.
        rows = sorted(survivors.items(), key=lambda item: (item[0][0].encode(), item[0][1].encode()))
        statement = Statement(
            """
            INSERT INTO @job_queue (
                id, "createdAt", "updatedAt", "workflowRunId", "stageId", status, priority, attempt, "maxAttempts",
                "nextPollAt", payload
            )
            SELECT
                job.id, clock.now, clock.now, job.run_id, job.stage_id, 'PENDING', job.priority, 0, $7::int,
                job.scheduled_for::timestamp, job.payload::jsonb
            FROM (SELECT date_trunc('milliseconds', clock_timestamp() AT TIME ZONE 'UTC') AS now) clock,
            unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::text[], $6::text[])
                job (id, run_id, stage_id, priority, scheduled_for, payload)
            ON CONFLICT ("workflowRunId", "stageId") DO UPDATE
            SET id = excluded.id, "createdAt" = excluded."createdAt", "updatedAt" = excluded."updatedAt",
                status = excluded.status, priority = excluded.priority, attempt = excluded.attempt,
                "maxAttempts" = excluded."maxAttempts", "workerId" = NULL, "lockedAt" = NULL, "startedAt" = NULL,
                "completedAt" = NULL, "nextPollAt" = excluded."nextPollAt", payload = excluded.payload,
                "lastError" = NULL
            """,
            (
                [job_id for _, (job_id, _) in rows],
                [run_id for (run_id, _), _ in rows],
                [stage_id for (_, stage_id), _ in rows],
                [job.priority for _, (_, job) in rows],
                [None if job.scheduled_for is None else instant_text(job.scheduled_for) for _, (_, job) in rows],
                [dumps(job.stored_payload) for _, (_, job) in rows],
                DEFAULT_MAX_ATTEMPTS,
            ),
        )
        await self._database.write(lambda: none(statement), single=True)
        self._settings.memory.came_new(list(survivors.values()))
        self._announce(job.scheduled_for for _, job in survivors.values())
        return [survivors[job.workflow_run_id, job.stage_id][0] for job in jobs]

    async def get_jobs_by_workflow_run(self, run_id: str) -> list[JobRecord]:
        statement = Statement(
            """
            SELECT @job.columns
            FROM @job_queue
            WHERE "workflowRunId" = $1
            ORDER BY "createdAt", id COLLATE "C"
            """,
            (run_id,),
        )
        return await self._database.read(lambda: every(JOB, statement))

    def adopt_worker_id(self, worker_id: str) -> str:
        return self._settings.worker_id.adopt(worker_id)

    @property
    def fairness_group_by(self) -> str | None:
        return None if self._settings.fairness is None else self._settings.fairness.group_by

    async def wait_for_jobs(self, timeout: timedelta) -> bool:
        return await self._database.wait_for_jobs(timeout.total_seconds(), self._next_due)

    async def _next_due(self) -> float | None:
        statement = next_due_job(owned=(await self._database.facts()).owned)

        def operation() -> Operation[float | None]:
            ((milliseconds,),) = yield statement
            return None if milliseconds is None else int(milliseconds) / 1000

        return await self._database.read(operation)


def _survivors(jobs: Sequence[EnqueueJobInput]) -> dict[tuple[str, str], tuple[str, EnqueueJobInput]]:
    """The last input of each (run, stage) pair under its new id. Ids are in the order of those inputs."""
    last: dict[tuple[str, str], EnqueueJobInput] = {}
    for job in jobs:
        pair = (job.workflow_run_id, job.stage_id)
        last.pop(pair, None)
        last[pair] = job
    return {pair: (new_id(), job) for pair, job in last.items()}
