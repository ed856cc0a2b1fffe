"""job_queue on SQLite: enqueueing, claiming and waiting. Acknowledgements and sweeps are in files of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import anyio

from workflow_adapters.arguments import enforces
from workflow_adapters.conveniences import JobQueueConveniences
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.job_queue import DEFAULT_MAX_ATTEMPTS, EnqueueJobInput
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.json_values import dumps
from workflow_adapters.ports.job_queue import (
    JobQueue,
    SupportsDequeueMany,
    SupportsFairness,
    SupportsWaiting,
    SupportsWorkerAdoption,
)
from workflow_adapters.queue_settings import QueueSettings
from workflow_adapters.records.job_queue import DequeueResult, JobRecord
from workflow_adapters.sql.columns import instant_to_ms
from workflow_adapters.sql.database import Database
from workflow_adapters.sql.results import every, none
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sql.tables import JOB
from workflow_adapters.sqlite.job_claims import first_live, lanes_of, take, take_next, take_next_of_lanes
from workflow_adapters.sqlite.job_fairness import FairChoice
from workflow_adapters.sqlite.job_signal import JobSignal
from workflow_adapters.sqlite.job_sweeps import SqliteJobSweeps

_LOOK_AGAIN: Final = 0.05
"""Other processes, and dates that come, wake nobody here."""


@enforces(JobQueue, SupportsWorkerAdoption, SupportsFairness, SupportsWaiting, SupportsDequeueMany)
class SqliteJobQueue(SqliteJobSweeps, JobQueueConveniences):
    def __init__(self, database: Database, settings: QueueSettings, signal: JobSignal) -> None:
        super().__init__(database, settings, signal)
        self._fair_choice = None if settings.fairness is None else FairChoice(settings.fairness)

    async def enqueue_parallel(self, jobs: Sequence[EnqueueJobInput]) -> list[str]:
        if not jobs:
            return []
        last_inputs: dict[tuple[str, str], EnqueueJobInput] = {}
        for job in jobs:
            pair = (job.workflow_run_id, job.stage_id)
            # Taken out first, so that jobs stand in the order of the inputs that survive.
            last_inputs.pop(pair, None)
            last_inputs[pair] = job
        ids = {pair: new_id() for pair in last_inputs}
        statement = Statement(
            """
            INSERT INTO @job_queue (
                id, "createdAt", "updatedAt", "workflowRunId", "stageId", status, priority, attempt, "maxAttempts",
                "nextPollAt", payload
            )
            SELECT
                json_extract(value, '$[0]'), $1, $1, json_extract(value, '$[1]'), json_extract(value, '$[2]'),
                'PENDING', json_extract(value, '$[3]'), 0, $2, json_extract(value, '$[4]'), json_extract(value, '$[5]')
            FROM json_each($3)
            WHERE true
            ON CONFLICT ("workflowRunId", "stageId") DO UPDATE
            SET id = excluded.id, "createdAt" = excluded."createdAt", "updatedAt" = excluded."updatedAt",
                status = excluded.status, priority = excluded.priority, attempt = excluded.attempt,
                "maxAttempts" = excluded."maxAttempts", "nextPollAt" = excluded."nextPollAt",
                payload = excluded.payload, "workerId" = NULL, "lockedAt" = NULL, "startedAt" = NULL,
                "completedAt" = NULL, "lastError" = NULL
            """,
            (self._database.now(), DEFAULT_MAX_ATTEMPTS, _rows(ids, last_inputs)),
        )
        await self._database.write(lambda: none(statement), single=True)
        self._signal.changed()
        return [ids[job.workflow_run_id, job.stage_id] for job in jobs]

    async def dequeue(self, serves: Serves = None) -> DequeueResult | None:
        lanes = _lanes(serves)
        if lanes == []:
            return None
        job = await self._database.write(lambda: self._take(lanes), single=self._fair_choice is None)
        if job is not None:
            self._signal.claimed()
        return job

    async def dequeue_many(self, limit: int, serves: Serves = None) -> list[DequeueResult]:
        lanes = _lanes(serves)
        if lanes == []:
            return []

        def operation() -> Operation[list[DequeueResult]]:
            taken: list[DequeueResult] = []
            while len(taken) < limit and (job := (yield from self._take(lanes))) is not None:
                taken.append(job)
            return taken

        jobs = await self._database.write(operation)
        if jobs:
            self._signal.claimed()
        return jobs

    async def get_jobs_by_workflow_run(self, run_id: str) -> list[JobRecord]:
        statement = Statement(
            """
            SELECT @job.columns
            FROM @job_queue
            WHERE "workflowRunId" = $1
            ORDER BY "createdAt", id
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
        deadline = anyio.current_time() + timeout.total_seconds()
        change, pause = self._signal.next_change(), self._signal.pause
        while True:
            remaining = deadline - anyio.current_time()
            with anyio.move_on_after(min(remaining, pause)):
                await change.wait()
            # Asked for before the look, so that no change after it is missed.
            change, pause = self._signal.next_change(), _LOOK_AGAIN
            if await self._database.read(partial(self._is_any_due, self._database.now())):
                self._signal.found()
                return True
            if remaining <= 0:
                return False

    def _take(self, lanes: Sequence[str] | None) -> Operation[DequeueResult | None]:
        # Read under the lock, whose wait would else be a part of the lease.
        now = self._database.now()
        worker_id = self._settings.worker_id.value
        if self._fair_choice is not None:
            while (job_id := (yield from self._fair_choice.choose(now, lanes))) is not None:
                job = yield from first_live(take(worker_id, now, job_id))
                if job is not None:
                    return job
            return None
        if lanes is None:
            return (yield from first_live(take_next(worker_id, now)))
        return (yield from first_live(take_next_of_lanes(worker_id, now, lanes)))

    def _is_any_due(self, now: datetime) -> Operation[bool]:
        if self._fair_choice is not None:
            return (yield from self._fair_choice.choose(now, None)) is not None
        rows = yield Statement(
            """
            SELECT 1 FROM @job_queue INDEXED BY wa_jobs_ready WHERE status = 'PENDING' AND "nextPollAt" IS NULL
            UNION ALL
            SELECT 1 FROM @job_queue INDEXED BY wa_jobs_scheduled WHERE status = 'PENDING' AND "nextPollAt" <= $1
            LIMIT 1
            """,
            (now,),
        )
        return bool(rows)


def _lanes(serves: Serves) -> list[str] | None:
    """The lanes of the checked `serves`: None for all, empty for none."""
    if serves is None or serves == "all":
        return None
    return lanes_of(serves) if serves else []


def _rows(ids: dict[tuple[str, str], str], jobs: dict[tuple[str, str], EnqueueJobInput]) -> str:
    return json.dumps(
        [
            (
                ids[pair],
                job.workflow_run_id,
                job.stage_id,
                job.priority,
                None if job.scheduled_for is None else instant_to_ms(job.scheduled_for),
                dumps(job.stored_payload),
            )
            for pair, job in jobs.items()
        ],
        ensure_ascii=False,
    )
