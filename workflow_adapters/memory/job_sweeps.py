"""Changes to many jobs at once: the two lease sweeps, cancelling and deleting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from workflow_adapters.arguments import enforces
from workflow_adapters.inputs.job_queue import DEFAULT_STALE_AFTER, LEASE_ABSOLUTE_CAP, LEASE_HEARTBEAT_LOST
from workflow_adapters.memory.adapter import MemoryAdapter, earlier
from workflow_adapters.memory.job_rows import finished, pending
from workflow_adapters.ports.job_queue import JobQueue, SupportsAbsoluteLease
from workflow_adapters.records.status import Status


@enforces(JobQueue, SupportsAbsoluteLease)
class MemoryJobSweeps(MemoryAdapter):
    async def delete_by_run_and_stages(self, run_id: str, stage_ids: Sequence[str]) -> int:
        async with self._session.write() as tables:
            wanted = set(stage_ids)
            jobs = [job for job in tables.jobs.by_run[run_id] if job.stage_id in wanted]
            for job in jobs:
                tables.jobs.remove(job)
            return len(jobs)

    async def cancel_by_run(self, run_id: str) -> int:
        async with self._session.write() as tables:
            now = self._session.now()
            jobs = [job for job in tables.jobs.by_run[run_id] if job.status in (Status.PENDING, Status.SUSPENDED)]
            for job in jobs:
                tables.jobs.put(finished(job, Status.CANCELLED, now))
            return len(jobs)

    async def release_stale_jobs(self, stale_after: timedelta = DEFAULT_STALE_AFTER, fail_spent: bool = False) -> int:
        async with self._session.write() as tables:
            now = self._session.now()
            cutoff = earlier(now, stale_after)
            error = f"{LEASE_HEARTBEAT_LOST}: no heartbeat for more than {stale_after}"
            running = tables.jobs.by_status[Status.RUNNING]
            stale = [job for job in running if job.locked_at is not None and job.locked_at < cutoff]
            for job in stale:
                if fail_spent and job.attempt >= job.max_attempts:
                    tables.jobs.put(finished(job, Status.FAILED, now, error))
                else:
                    tables.jobs.put(replace(pending(job, now), last_error=error))
            return len(stale)

    async def expire_runaway_jobs(self, absolute_timeout: timedelta) -> int:
        async with self._session.write() as tables:
            now = self._session.now()
            cutoff = earlier(now, absolute_timeout)
            error = f"{LEASE_ABSOLUTE_CAP}: still running after more than {absolute_timeout}"
            running = tables.jobs.by_status[Status.RUNNING]
            runaway = [job for job in running if job.started_at is not None and job.started_at < cutoff]
            for job in runaway:
                tables.jobs.put(finished(job, Status.FAILED, now, error))
            return len(runaway)
