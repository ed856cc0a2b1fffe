"""What the job queues of one bundle share."""

from __future__ import annotations

from dataclasses import dataclass, field

from workflow_adapters.errors import ConfigurationError
from workflow_adapters.inputs.job_queue import JobQueueFairness, RetryBackoff
from workflow_adapters.worker_id import WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Who claims, under which cap, and how long a failed job waits."""

    worker_id: WorkerId = field(default_factory=WorkerId)
    fairness: JobQueueFairness | None = None
    backoff: RetryBackoff = field(default_factory=RetryBackoff)

    def __post_init__(self) -> None:
        _check(
            "fairness", self.fairness, JobQueueFairness, "JobQueueFairness(max_concurrent_per_group=5)", optional=True
        )
        _check("backoff", self.backoff, RetryBackoff, "RetryBackoff()", optional=False)


def _check(name: str, value: object, kind: type, example: str, *, optional: bool) -> None:
    if not isinstance(value, kind) and not (optional and value is None):
        raise ConfigurationError(f"{name}: must be a {kind.__name__} such as {example}, not {value!r}")
