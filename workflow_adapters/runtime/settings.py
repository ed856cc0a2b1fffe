"""How a worker behaves, checked when it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.job_queue import DEFAULT_STALE_AFTER
from workflow_adapters.inputs.runs import Serves, serves
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.runtime.heartbeat import QueueFactory
from workflow_adapters.validation import key, non_negative_span, normalise, optional, positive, unchecked

_BEATS_PER_LEASE = 5
_FEWEST_BEATS = 4


class WorkerOptions(TypedDict, total=False):
    """What a `Worker` takes by keyword; `WorkerSettings` says what each is for, and its default."""

    concurrency: int
    serves: Serves
    worker_id: str | None
    lease: timedelta
    heartbeat_every: timedelta | None
    heartbeat_thread: QueueFactory | None
    poll_interval: timedelta
    job_timeout: timedelta | None
    drain: timedelta
    grace: timedelta
    on_superseded: Callable[[DequeueResult], None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Options of a `Worker`.

    - `concurrency`: handlers running at once.
    - `serves`: handed to every claim, and checked again on every claimed job.
    - `worker_id`: what claims are stamped with, if the queue was given no id of its own; made up without one.
    - `lease`: how long a claim lives without a heartbeat; the `stale_after` of the reaper must not be shorter.
    - `heartbeat_every`: a fifth of the lease by default, at most a quarter.
    - `heartbeat_thread`: opens the queue again for a thread that beats while a handler blocks the loop.
    - `poll_interval`: the longest pause between claims of an idle worker.
    - `job_timeout`: time limit of one attempt; None is no limit.
    - `drain`: how long `stop` lets running handlers go on; `grace`: how long cancelled ones may take to end.
    - `on_superseded`: called in the worker's loop with the claim whose lease was lost.
    """

    concurrency: int = 10
    serves: Serves = None
    worker_id: str | None = None
    lease: timedelta = DEFAULT_STALE_AFTER
    heartbeat_every: timedelta | None = None
    heartbeat_thread: QueueFactory | None = None
    poll_interval: timedelta = timedelta(seconds=1)
    job_timeout: timedelta | None = None
    drain: timedelta = timedelta(seconds=30)
    grace: timedelta = timedelta(seconds=5)
    on_superseded: Callable[[DequeueResult], None] | None = None

    def __post_init__(self) -> None:
        normalise(
            self,
            concurrency=positive,
            serves=serves,
            worker_id=optional(key),
            lease=non_negative_span,
            heartbeat_every=optional(non_negative_span),
            heartbeat_thread=unchecked,
            poll_interval=non_negative_span,
            job_timeout=optional(non_negative_span),
            drain=non_negative_span,
            grace=non_negative_span,
            on_superseded=unchecked,
        )
        for field in ("lease", "poll_interval", "heartbeat_every", "job_timeout"):
            if getattr(self, field) == timedelta(0):
                raise InvalidValueError(field, field, "must be longer than 0")
        if self.heartbeat_every is not None and self.heartbeat_every * _FEWEST_BEATS > self.lease:
            raise InvalidValueError("heartbeat_every", "heartbeat_every", "must be at most a quarter of the lease")

    @property
    def beat_interval(self) -> timedelta:
        return self.heartbeat_every or self.lease / _BEATS_PER_LEASE
