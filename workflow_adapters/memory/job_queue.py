"""job_queue: enqueueing, claiming and waiting. Acknowledgements and sweeps are in files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import anyio

from workflow_adapters.arguments import enforces
from workflow_adapters.conveniences import JobQueueConveniences
from workflow_adapters.inputs.job_queue import EnqueueJobInput
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.memory.adapter import served
from workflow_adapters.memory.job_acks import MemoryJobAcks
from workflow_adapters.memory.job_claims import Claim, GroupCap
from workflow_adapters.memory.job_rows import is_due, job_record, new_job
from workflow_adapters.memory.job_sweeps import MemoryJobSweeps
from workflow_adapters.memory.session import Session
from workflow_adapters.memory.tables import Tables
from workflow_adapters.ports.job_queue import (
    JobQueue,
    SupportsDequeueMany,
    SupportsFairness,
    SupportsWaiting,
    SupportsWorkerAdoption,
)
from workflow_adapters.queue_settings import QueueSettings
from workflow_adapters.records.job_queue import DequeueResult, JobRecord
from workflow_adapters.records.status import Status

_LOOK_AGAIN: Final = 0.05


@enforces(JobQueue, SupportsWorkerAdoption, SupportsFairness, SupportsWaiting, SupportsDequeueMany)
class MemoryJobQueue(MemoryJobAcks, MemoryJobSweeps, JobQueueConveniences):
    def __init__(self, session: Session, settings: QueueSettings) -> None:
        super().__init__(session)
        self._settings = settings
        self._backoff = settings.backoff

    async def enqueue_parallel(self, jobs: Sequence[EnqueueJobInput]) -> list[str]:
        async with self._session.write() as tables:
            now = self._session.now()
            last_inputs: dict[tuple[str, str], EnqueueJobInput] = {}
            for job in jobs:
                pair = (job.workflow_run_id, job.stage_id)
                # Taken out first, so that jobs stand in the order of the inputs that survive.
                last_inputs.pop(pair, None)
                last_inputs[pair] = job
            ids: dict[tuple[str, str], str] = {}
            for pair, job in last_inputs.items():
                stored = tables.jobs.by_pair.get(pair)
                if stored is not None:
                    tables.jobs.remove(stored)
                ids[pair] = tables.jobs.put(new_job(job, now)).id
            return [ids[job.workflow_run_id, job.stage_id] for job in jobs]

    async def dequeue(self, serves: Serves = None) -> DequeueResult | None:
        async with self._session.write() as tables:
            return self._claim(tables, serves).take_next(tables)

    async def get_jobs_by_workflow_run(self, run_id: str) -> list[JobRecord]:
        async with self._session.read() as tables:
            return [job_record(job) for job in tables.jobs.by_run[run_id]]

    def adopt_worker_id(self, worker_id: str) -> str:
        return self._settings.worker_id.adopt(worker_id)

    @property
    def fairness_group_by(self) -> str | None:
        return None if self._settings.fairness is None else self._settings.fairness.group_by

    async def wait_for_jobs(self, timeout: timedelta) -> bool:
        deadline = anyio.current_time() + timeout.total_seconds()
        while True:
            # Asked for before the look, so that no change between the two is missed.
            changed = self._session.home.store.jobs_changed()
            async with self._session.read() as tables:
                if self._is_any_due(tables):
                    return True
            remaining = deadline - anyio.current_time()
            if remaining <= 0:
                return False
            # The adapter's clock may move otherwise than the event loop's, so what comes due is looked for often.
            with anyio.move_on_after(min(remaining, _LOOK_AGAIN)):
                await changed.wait()

    async def dequeue_many(self, limit: int, serves: Serves = None) -> list[DequeueResult]:
        async with self._session.write() as tables:
            claim = self._claim(tables, serves)
            taken: list[DequeueResult] = []
            while len(taken) < limit and (job := claim.take_next(tables)) is not None:
                taken.append(job)
            return taken

    def _claim(self, tables: Tables, serves: Serves) -> Claim:
        return Claim(
            worker_id=self._settings.worker_id.value,
            now=self._session.now(),
            serves=served(serves),
            cap=GroupCap(tables, self._settings.fairness),
        )

    def _is_any_due(self, tables: Tables) -> bool:
        now, cap = self._session.now(), GroupCap(tables, self._settings.fairness)
        return any(is_due(job, now) and not cap.is_full(job) for job in tables.jobs.by_status.iterate(Status.PENDING))
