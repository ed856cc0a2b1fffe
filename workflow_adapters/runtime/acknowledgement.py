"""Fenced acknowledgements that outlast a database blip, and completions sent together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from workflow_adapters.errors import OutcomeUnknownError
from workflow_adapters.ports.capabilities import supports
from workflow_adapters.ports.job_queue import JobQueue, SupportsCompleteMany
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome, Status
from workflow_adapters.runtime.backoff import Backoff
from workflow_adapters.runtime.leases import HeldLeases, Lease
from workflow_adapters.runtime.observation import Event, Observation
from workflow_adapters.runtime.trouble import TROUBLE

Acknowledge = Callable[[], Awaitable[JobAckOutcome]]


class Acknowledger:
    """Sends acknowledgements of one worker, each tried again while its lease lasts."""

    def __init__(self, queue: JobQueue, leases: HeldLeases, observation: Observation) -> None:
        self._queue = queue
        self._leases = leases
        self._observation = observation
        self._waiting: list[_Completion] = []
        self._sending = False

    async def complete(self, lease: Lease) -> bool:
        return await self._send(lease, lambda: self._complete(lease), Status.COMPLETED)

    async def send(self, lease: Lease, acknowledge: Acknowledge, status: Status) -> bool:
        """Send until answered or the lease ends; True when it was written. `status` is what a written one leaves."""
        return await self._send(lease, acknowledge, status)

    async def _send(self, lease: Lease, acknowledge: Acknowledge, status: Status) -> bool:
        backoff = Backoff()
        unknown = False
        lease.acknowledging = True
        while lease.lost_reason is None:
            try:
                with anyio.fail_after(max(lease.seconds_left(), 0)):
                    outcome = await acknowledge()
            except TROUBLE as error:
                unknown = unknown or isinstance(error, TimeoutError | OutcomeUnknownError)
                self._note(Event.ACK_RETRIED, lease, f"failed ({error!r}) and is tried again", error=repr(error))
                await backoff.pause(lease.lost)
                continue
            if outcome is JobAckOutcome.ACKNOWLEDGED or (unknown and await self.was_written(lease, status)):
                return True
            self._leases.mark_superseded(lease)
            self._note(Event.ACK_SUPERSEDED, lease, "was refused: another worker holds the job")
            self._leases.tell_superseded(lease.job)
            return False
        self._note(Event.ACK_ABANDONED, lease, "was given up: the lease is lost")
        return False

    async def was_written(self, lease: Lease, status: Status) -> bool:
        # A first try whose reply was lost makes the second one SUPERSEDED: the row tells which it was.
        try:
            jobs = await self._queue.get_jobs_by_workflow_run(lease.job.workflow_run_id)
        except TROUBLE:
            return False
        return any(
            job.id == lease.job.job_id and job.status is status and job.started_at == lease.job.started_at
            for job in jobs
        )

    def _note(self, event: Event, lease: Lease, what: str, **fields: object) -> None:
        job = lease.job
        message = f"the acknowledgement of job {job.job_id} (attempt {job.attempt}) {what}"
        self._observation.note(event, message, job_id=job.job_id, attempt=job.attempt, **fields)

    async def _complete(self, lease: Lease) -> JobAckOutcome:
        if not supports(self._queue, SupportsCompleteMany):
            return await self._queue.complete(*lease.claim)
        completion = _Completion(lease.claim)
        self._waiting.append(completion)
        if self._sending:
            # Whoever is sending wakes us: with the answer, or for our turn to send what has gathered meanwhile.
            try:
                await completion.woken.wait()
            except BaseException:
                self._leave(completion)
                raise
        if completion in self._waiting:
            await self._send_waiting(self._queue)
        if completion.error is not None:
            raise completion.error
        return completion.outcome or JobAckOutcome.SUPERSEDED

    async def _send_waiting(self, queue: SupportsCompleteMany) -> None:
        """Send one group, ours among them; the next one is sent by somebody who is in it."""
        self._sending = True
        group, self._waiting = self._waiting[:_GROUP], self._waiting[_GROUP:]
        try:
            await _send_group(queue, group)
        finally:
            self._next_turn()

    def _leave(self, completion: _Completion) -> None:
        if completion in self._waiting:
            self._waiting.remove(completion)
            if completion.woken.is_set():
                self._next_turn()

    def _next_turn(self) -> None:
        self._sending = bool(self._waiting)
        if self._waiting:
            self._waiting[0].woken.set()


_GROUP = 500


class _Completion:
    """One completion waiting to be sent with others."""

    def __init__(self, claim: tuple[str, JobAckFence]) -> None:
        self.claim = claim
        self.woken = anyio.Event()
        self.outcome: JobAckOutcome | None = None
        self.error: Exception | None = None


async def _send_group(queue: SupportsCompleteMany, group: list[_Completion]) -> None:
    try:
        outcomes = await queue.complete_many([completion.claim for completion in group])
        for completion, outcome in zip(group, outcomes, strict=True):
            completion.outcome = outcome
    except Exception as error:  # noqa: BLE001 - it is raised by each of those who wait
        for completion in group:
            completion.error = error
    finally:
        for completion in group:
            if completion.outcome is None and completion.error is None:
                completion.error = OutcomeUnknownError("the task that sent this completion was cancelled")
            completion.woken.set()
