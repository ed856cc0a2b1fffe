"""What the job queues of one bundle share."""

from __future__ import annotations

from dataclasses import dataclass, field

from workflow_adapters.inputs.job_queue import JobQueueFairness, RetryBackoff
from workflow_adapters.worker_id import WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Who claims, under which cap, and how long a failed job waits."""

    worker_id: WorkerId = field(default_factory=WorkerId)
    fairness: JobQueueFairness | None = None
    backoff: RetryBackoff = field(default_factory=RetryBackoff)
