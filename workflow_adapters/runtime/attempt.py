"""One attempt at one job: run the handler under its lease, then acknowledge what came of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio

from workflow_adapters.payloads import is_served
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import JobQueue, SupportsDefer
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import JobAckOutcome, Status
from workflow_adapters.runtime.acknowledgement import Acknowledger
from workflow_adapters.runtime.handler_calls import HandlerCalls
from workflow_adapters.runtime.job_context import JobContext
from workflow_adapters.runtime.leases import HeldLeases, Lease
from workflow_adapters.runtime.observation import Event, Observation, describe
from workflow_adapters.runtime.outcomes import Defer, Handler, LeaseLostError, PermanentJobError, Suspend
from workflow_adapters.runtime.settings import WorkerSettings

NOT_SERVED_PAUSE = timedelta(seconds=30)
ANSWERS = "it may return None, Suspend(...) or Defer(...)"


class Failed:
    """The attempt failed; `retry` says whether another may be made."""

    def __init__(self, error: str, *, retry: bool, event: Event = Event.JOB_RETRIED) -> None:
        self.error = error
        self.retry = retry
        self.event = event


class Attempts:
    """Runs attempts for one worker."""

    def __init__(
        self,
        queue: JobQueue,
        handler: Handler,
        adapters: Adapters | None,
        settings: WorkerSettings,
        leases: HeldLeases,
        observation: Observation,
    ) -> None:
        self._queue = queue
        self._adapters = adapters
        self._settings = settings
        self._leases = leases
        self._observation = observation
        self._acknowledger = Acknowledger(queue, leases, observation)
        self._calls = HandlerCalls(handler, settings.grace.total_seconds(), observation)

    async def run(self, lease: Lease, draining: anyio.Event) -> None:
        """Run the handler and acknowledge. `draining` set and the scope cancelled: the worker stops."""
        job = lease.job
        if not self._serves(job):
            await self.decline(lease, f"this worker does not serve {_definition(job)}", NOT_SERVED_PAUSE)
            self._note(Event.JOB_NOT_SERVED, job, f"{_definition(job)} is not served here")
            return
        context = JobContext(self._queue, self._adapters, self._leases, lease)
        result = await self._handle(context, lease, draining)
        if lease.completed:
            self._note(Event.JOB_COMPLETED, job, "completed")
        elif lease.outcome_unknown:
            await self._settle_unknown(lease)
        elif lease.lost_reason is None:
            await self._acknowledge(lease, result)
        else:
            self._leases.end_lost()

    def _serves(self, job: DequeueResult) -> bool:
        served = self._settings.serves
        known = None if isinstance(served, str) or served is None else tuple(served)
        return is_served(job.workflow_id, job.definition_version, known)

    async def _handle(self, context: JobContext, lease: Lease, draining: anyio.Event) -> object:
        limit = self._settings.job_timeout
        lease.scope = anyio.CancelScope()
        try:
            with lease.scope, anyio.move_on_after(None if limit is None else limit.total_seconds()) as timer:
                return await self._calls.call(context)
        except Exception as error:  # noqa: BLE001  # whatever a handler raises is the job's failure, not the worker's
            if isinstance(error, LeaseLostError):
                self._leases.end_lost()
            return Failed(describe(error), retry=not isinstance(error, PermanentJobError))
        if timer.cancelled_caught:
            self._note(Event.JOB_TIMED_OUT, lease.job, f"did not end within {limit}")
            return Failed(f"did not end within its time limit of {limit}", retry=True)
        if draining.is_set():
            return Defer(next_poll_at=datetime.now(UTC), reason="the worker stopped before the job ended")
        return Failed("the handler was cancelled", retry=True)

    async def _acknowledge(self, lease: Lease, result: object) -> None:
        job = lease.job
        match result:
            case Failed():
                await self._fail(lease, result)
            case Suspend(next_poll_at=due):
                suspend = lambda: self._queue.suspend(job.job_id, due, job.fence)  # noqa: E731  # sent again as it is
                if await self._acknowledger.send(lease, suspend, Status.SUSPENDED):
                    self._note(Event.JOB_SUSPENDED, job, "suspended")
            case Defer(next_poll_at=due, reason=reason):
                await self.decline(lease, reason, due)
                self._note(Event.JOB_DEFERRED, job, f"deferred: {reason}")
            case None:
                if await self._acknowledger.complete(lease):
                    self._note(Event.JOB_COMPLETED, job, "completed")
            case _:
                # Not tried again: the handler has done its work, and says so in a way that nobody understands.
                said = repr(result) if isinstance(result, type) else type(result).__name__
                await self._fail(lease, Failed(f"the handler returned {said}; {ANSWERS}", retry=False))

    async def _fail(self, lease: Lease, failure: Failed) -> None:
        job = lease.job
        retry = failure.retry and job.attempt < job.max_attempts

        async def fail() -> JobAckOutcome:
            return await self._queue.fail(job.job_id, failure.error, failure.retry, job.fence)

        if await self._acknowledger.send(lease, fail, Status.PENDING if retry else Status.FAILED):
            event = Event.JOB_RETRIED if retry else Event.JOB_FAILED
            self._note(event, job, f"failed: {failure.error}", error=failure.error)

    async def decline(self, lease: Lease, reason: str, due: datetime | timedelta) -> None:
        """Give the job back without spending the attempt; a queue that can not, counts it as a failed attempt."""
        job = lease.job
        instant = due if isinstance(due, datetime) else datetime.now(UTC) + due

        async def give_back() -> JobAckOutcome:
            if supports(self._queue, SupportsDefer):
                return await self._queue.defer(job.job_id, instant, reason, job.fence)
            return await self._queue.fail(job.job_id, reason, True, job.fence)  # as the port has it

        await self._acknowledger.send(lease, give_back, Status.PENDING)

    async def _settle_unknown(self, lease: Lease) -> None:
        if await self._acknowledger.was_written(lease, Status.COMPLETED):
            self._note(Event.JOB_COMPLETED, lease.job, "completed")
            return
        # Completing the job now would lose the handler's writes if that commit did not happen. A failure that is
        # fenced tells: it is refused if the commit happened, and gives the job another attempt if it did not.
        await self._fail(lease, Failed("the commit of the job's transaction was interrupted", retry=True))

    def _note(self, event: Event, job: DequeueResult, what: str, **fields: object) -> None:
        self._observation.note(
            event,
            f"job {job.job_id} (attempt {job.attempt}) {what}",
            job_id=job.job_id,
            workflow_run_id=job.workflow_run_id,
            stage_id=job.stage_id,
            attempt=job.attempt,
            **fields,
        )


def _definition(job: DequeueResult) -> str:
    version = f" version {job.definition_version}" if job.definition_version is not None else ""
    return f"workflow {job.workflow_id}{version}"
