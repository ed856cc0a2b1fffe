"""A queue with some honest gaps and some mistakes that nobody has noticed: what reports look like when there is red.

python -m conformance run tests.conformance.careless:specs
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from conformance.backend import Env, Fixture, Spec
from conformance.clause import Parameters, Port
from tests.conformance.backends import memory
from tests.conformance.memory_backend import open_on_memory
from workflow_adapters.inputs.runs import Serves
from workflow_adapters.ports.job_queue import SupportsAbsoluteLease, SupportsDefer, SupportsHeartbeat
from workflow_adapters.records.job_queue import DequeueResult, JobAckFence
from workflow_adapters.records.status import JobAckOutcome


class CarelessQueue:
    """A memory queue that forgets a fence, a lease, and an attempt."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def complete(self, job_id: str, fence: JobAckFence | None = None) -> JobAckOutcome:
        del fence
        return await self._queue.complete(job_id)

    async def dequeue(self, serves: Serves = None) -> DequeueResult | None:
        claimed = await self._queue.dequeue(serves)
        return claimed and replace(claimed, attempt=max(1, claimed.attempt - 1))

    async def release_stale_jobs(self, stale_after: timedelta = timedelta(minutes=5), fail_spent: bool = False) -> int:
        del fail_spent
        return await self._queue.release_stale_jobs(stale_after)


@asynccontextmanager
async def careless(env: Env) -> AsyncGenerator[Fixture[Any]]:
    # A fixed id, so that no machine's name gets into what is shown.
    options = replace(env.options, worker_id=f"worker-{env.instance}")
    async with open_on_memory(replace(env, options=options)) as bundle:
        yield replace(bundle, adapter=CarelessQueue(bundle.adapter.job_queue))


specs: Final = [
    *(spec for spec in memory if spec.port is Port.JOB_QUEUE),
    Spec(
        port=Port.JOB_QUEUE,
        factory=careless,
        name="careless",
        capabilities={SupportsDefer, SupportsHeartbeat, SupportsAbsoluteLease},
        parameters=Parameters(writers="one"),
        gaps={"JQ-STALE-10": "the queue has no way to fail a job in a sweep"},
    ),
]
