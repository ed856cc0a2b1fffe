"""What a handler may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from workflow_adapters.errors import WorkflowAdapterError
from workflow_adapters.validation import instant, normalise, text

if TYPE_CHECKING:
    from workflow_adapters.runtime.job_context import JobContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """The job waits for something outside: SUSPENDED until its pair is enqueued again."""

    next_poll_at: datetime

    def __post_init__(self) -> None:
        normalise(self, next_poll_at=instant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defer:
    """Not now: PENDING again, due at `next_poll_at`, without spending the attempt."""

    next_poll_at: datetime
    reason: str

    def __post_init__(self) -> None:
        normalise(self, next_poll_at=instant, reason=text)


Outcome: TypeAlias = Suspend | Defer | None
"""What a handler returns; None (or nothing) completes the job."""

Handler: TypeAlias = "Callable[[JobContext], Awaitable[Outcome]]"


class PermanentJobError(Exception):
    """Raised by a handler: the job fails for good, whatever attempts are left."""


class LeaseLostError(WorkflowAdapterError):
    """The job is another worker's by now; what this handler wrote in the transaction is rolled back."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"the lease on job {job_id!r} is lost")
        self.job_id = job_id

    def __reduce__(self) -> tuple[type[LeaseLostError], tuple[str]]:
        return type(self), (self.job_id,)
