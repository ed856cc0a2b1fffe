"""What the parts of the job queue stand on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from workflow_adapters.postgres.database import PostgresDatabase
from workflow_adapters.postgres.lookahead import ClaimMemory
from workflow_adapters.queue_settings import QueueSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresQueueSettings(QueueSettings):
    """The same, and what their claims remember."""

    memory: ClaimMemory = field(default_factory=ClaimMemory)


class JobPort:
    """Base of the job queue's parts."""

    def __init__(self, database: PostgresDatabase, settings: PostgresQueueSettings) -> None:
        self._database = database
        self._settings = settings

    def _ended(self, job_ids: Iterable[str]) -> None:
        """These jobs are no longer RUNNING. Under a cap, that lets others run."""
        if self._settings.fairness is not None:
            for job_id in job_ids:
                self._settings.memory.ended(job_id)
            self._database.jobs_changed()

    def _came_back(self, due_at: datetime | None) -> None:
        """A job may be claimed that was claimed before, at the instant or (None) at once."""
        self._settings.memory.came_back()
        self._announce([due_at])

    def _announce(self, due_at: Iterable[datetime | None]) -> None:
        """Tell whoever waits. By this host's clock: it decides who looks when, and nothing else."""
        now = datetime.now(UTC)
        if any(instant is None or instant <= now for instant in due_at):
            self._database.jobs_changed()
        else:
            self._database.jobs_scheduled()
