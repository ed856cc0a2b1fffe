"""The JobQueue port over Redis."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from examples.custom_adapter import fields, scripts
from examples.custom_adapter.scripts import Script
from examples.custom_adapter.server import RedisServer
from workflow_adapters import (
    LEASE_ABSOLUTE_CAP,
    LEASE_HEARTBEAT_LOST,
    Clock,
    DequeueResult,
    EnqueueJobInput,
    JobAckFence,
    JobAckOutcome,
    JobQueue,
    JobRecord,
    NotFoundError,
    RetryBackoff,
    Serves,
    SupportsAbsoluteLease,
    SupportsCompleteMany,
    SupportsDefer,
    SupportsDequeueMany,
    SupportsHeartbeat,
    SupportsWorkerAdoption,
)
from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.job_queue import DEFAULT_STALE_AFTER


# The decorator checks arguments as the port declares them, before a method's first line.
@enforces(
    JobQueue,
    SupportsDefer,
    SupportsAbsoluteLease,
    SupportsWorkerAdoption,
    SupportsHeartbeat,
    SupportsDequeueMany,
    SupportsCompleteMany,
)
class RedisJobQueue:
    """Jobs in Redis. Without a clock, Redis's own stamps and decides, and no host's clock matters."""

    def __init__(
        self, server: RedisServer, *, prefix: str, worker_id: str | None, backoff: RetryBackoff, clock: Clock | None
    ) -> None:
        self._server = server
        self._prefix = prefix
        self._backoff = backoff
        self._clock = clock
        self._is_configured = False
        self._worker_id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        if worker_id is not None:
            self.adopt_worker_id(worker_id)
            self._is_configured = True

    async def enqueue_parallel(self, jobs: Sequence[EnqueueJobInput]) -> list[str]:
        last_inputs: dict[tuple[str, str], EnqueueJobInput] = {}
        for job in jobs:
            # Taken out first, so that jobs stand in the order of the inputs that survive.
            last_inputs.pop((job.workflow_run_id, job.stage_id), None)
            last_inputs[job.workflow_run_id, job.stage_id] = job
        if not last_inputs:
            return []
        made = await self._run(scripts.ENQUEUE, jobs=[fields.new_job(job) for job in last_inputs.values()])
        ids = dict(zip(last_inputs, made, strict=True))
        return [ids[job.workflow_run_id, job.stage_id] for job in jobs]

    async def delete_by_run_and_stages(self, run_id: str, stage_ids: Sequence[str]) -> int:
        return await self._run(scripts.DELETE, run_id=run_id, stage_ids=stage_ids)

    async def dequeue(self, serves: Serves = None) -> DequeueResult | None:
        claimed = await self.dequeue_many(1, serves)
        return claimed[0] if claimed else None

    async def dequeue_many(self, limit: int, serves: Serves = None) -> list[DequeueResult]:
        given: dict[str, object] = {"worker_id": self._worker_id, "limit": limit}
        if serves is not None and not isinstance(serves, str):
            if not serves:
                return []
            given["serves"] = [(served.workflow_id, served.version) for served in serves]
        return [fields.dequeue_result(job) for job in await self._run(scripts.CLAIM, **given)]

    async def complete(self, job_id: str, fence: JobAckFence | None = None) -> JobAckOutcome:
        return await self._acknowledge(job_id, fence, "complete")

    async def suspend(self, job_id: str, next_poll_at: datetime, fence: JobAckFence | None = None) -> JobAckOutcome:
        return await self._acknowledge(job_id, fence, "suspend", next_poll_at=fields.written(next_poll_at))

    async def fail(
        self, job_id: str, error: str, should_retry: bool = False, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        backoff = {"base_ms": self._backoff.base_ms, "factor": self._backoff.factor, "cap_ms": self._backoff.cap_ms}
        return await self._acknowledge(job_id, fence, "fail", error=error, should_retry=should_retry, **backoff)

    async def defer(
        self, job_id: str, next_poll_at: datetime, reason: str, fence: JobAckFence | None = None
    ) -> JobAckOutcome:
        due_at = fields.written(next_poll_at)
        return await self._acknowledge(job_id, fence, "defer", next_poll_at=due_at, reason=reason)

    async def complete_many(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        return await self._acknowledge_many(claims, "complete")

    async def heartbeat(self, claims: Sequence[tuple[str, JobAckFence]]) -> list[JobAckOutcome]:
        return await self._acknowledge_many(claims, "heartbeat")

    async def touch_job(self, job_id: str) -> None:
        await self._run(scripts.TOUCH, job_id=job_id)

    async def cancel_by_run(self, run_id: str) -> int:
        return await self._run(scripts.CANCEL_RUN, run_id=run_id)

    async def release_stale_jobs(self, stale_after: timedelta = DEFAULT_STALE_AFTER, fail_spent: bool = False) -> int:
        return await self._run(
            scripts.RELEASE_STALE,
            stale_after=fields.milliseconds(stale_after),
            fail_spent=fail_spent,
            error=f"{LEASE_HEARTBEAT_LOST}: no heartbeat for more than {stale_after}",
        )

    async def expire_runaway_jobs(self, absolute_timeout: timedelta) -> int:
        return await self._run(
            scripts.EXPIRE_RUNAWAY,
            absolute_timeout=fields.milliseconds(absolute_timeout),
            error=f"{LEASE_ABSOLUTE_CAP}: still running after more than {absolute_timeout}",
        )

    async def get_jobs_by_workflow_run(self, run_id: str) -> list[JobRecord]:
        jobs = [fields.job_record(job) for job in await self._run(scripts.LIST_RUN, run_id=run_id)]
        return sorted(jobs, key=lambda job: (job.created_at, job.id))

    def adopt_worker_id(self, worker_id: str) -> str:
        if not self._is_configured:
            self._worker_id = worker_id
        return self._worker_id

    async def _acknowledge(self, job_id: str, fence: JobAckFence | None, ending: str, **given: object) -> JobAckOutcome:
        claim = fields.claim_of(job_id, fence)
        [outcome] = await self._run(scripts.ACKNOWLEDGE, ending=ending, claims=[claim], **given)
        if outcome == "unknown":
            raise NotFoundError("job", job_id)
        return JobAckOutcome(outcome)

    async def _acknowledge_many(self, claims: Sequence[tuple[str, JobAckFence]], ending: str) -> list[JobAckOutcome]:
        fenced = [fields.claim_of(job_id, fence) for job_id, fence in claims]
        outcomes = await self._run(scripts.ACKNOWLEDGE, ending=ending, claims=fenced)
        return [JobAckOutcome(outcome) for outcome in outcomes]

    async def _run(self, script: Script, **given: object) -> Any:
        now = "" if self._clock is None else fields.written(self._clock.now())
        answer = await self._server.run(script, self._prefix, now, json.dumps(given, ensure_ascii=False))
        return json.loads(answer)
