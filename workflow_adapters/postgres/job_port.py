"""What the parts of the job queue stand on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from workflow_adapters.inputs.job_queue import JobQueueFairness, RetryBackoff
from workflow_adapters.postgres.database import PostgresDatabase
from workflow_adapters.postgres.lookahead import ClaimMemory
from workflow_adapters.worker_id import WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What the job queues of one bundle share."""

    worker_id: WorkerId = field(default_factory=WorkerId)
    fairness: JobQueueFairness | None = None
    backoff: RetryBackoff = field(default_factory=RetryBackoff)
    memory: ClaimMemory = field(default_factory=ClaimMemory)


class JobPort:
    """Base of the job queue's parts."""

    def __init__(self, database: PostgresDatabase, settings: QueueSettings) -> None:
        self._database = database
        self._settings = settings

    def _ended(self, job_ids: Iterable[str]) -> None:
        """These jobs are no longer RUNNING. Under a cap, that lets others run."""
        if self._settings.fairness is not None:
            for job_id in job_ids:
                self._settings.memory.ended(job_id)
            self._database.jobs_changed()

    def _came_back(self) -> None:
        """Jobs may be claimed that were claimed before."""
        self._settings.memory.came_back()
        self._database.jobs_changed()
