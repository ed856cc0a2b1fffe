"""Contract of workflow_runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.runs import CreateRunInput, Serves, UpdateRunInput, purgeable_statuses, serves
from workflow_adapters.records.runs import PurgeableRun, WorkflowRunRecord
from workflow_adapters.records.status import Status
from workflow_adapters.validation import instance, instant, key, non_negative, optional


class Runs(Protocol):
    """Workflow runs."""

    @checked(run=instance(CreateRunInput))
    async def create_run(self, run: CreateRunInput) -> WorkflowRunRecord:
        """Store a PENDING run at version 1 and return it. A taken id: AlreadyExistsError."""
        ...

    @checked(id=key, patch=instance(UpdateRunInput))
    async def update_run(self, id: str, patch: UpdateRunInput) -> None:
        """Write the patch, raise `version` by one and set updated_at, on every call, an empty patch too.

        With expected_version the write happens only if the stored version equals it, else StaleVersionError.
        Unknown id: NotFoundError.
        """
        ...

    @checked(id=key)
    async def get_run(self, id: str) -> WorkflowRunRecord | None:
        """The run, or None."""
        ...

    @checked(id=key)
    async def get_run_status(self, id: str) -> Status | None:
        """The run's status, or None."""
        ...

    @checked(stuck_since=instant)
    async def get_stuck_runs(self, stuck_since: datetime) -> list[WorkflowRunRecord]:
        """RUNNING runs untouched since then: updated_at <= stuck_since and no stage with a later updated_at.

        Ordered by updated_at, then id.
        """
        ...

    @checked(now=optional(instant), serves=serves)
    async def claim_next_pending_run(
        self, now: datetime | None = None, serves: Serves = None
    ) -> WorkflowRunRecord | None:
        """Take the PENDING run of the highest priority, then the oldest (created_at, then id), or None.

        It becomes RUNNING with started_at = updated_at = `now` (the caller's clock; the adapter's Clock without it)
        and version + 1. Two callers never get one run, and none waits behind another's row lock. A run pinned to a
        definition version is claimable only by a caller that serves that very (workflow, version); an unpinned one by
        a caller whose `serves` names its workflow; [] claims nothing; None or "all" claims any. None is answered only
        if at some instant during the call nothing was claimable; races lost beyond a bound: BackendBusyError.
        """
        ...

    @checked(cutoff=instant, statuses=purgeable_statuses, limit=non_negative)
    async def list_runs_for_purge(self, cutoff: datetime, statuses: Sequence[Status], limit: int) -> list[PurgeableRun]:
        """Runs in one of `statuses` that finished at or before `cutoff`, by finish time, then id; at most `limit`.

        Finish time is completed_at, or updated_at where that is null. COMPLETED, FAILED and CANCELLED are purgeable;
        another status is an InvalidValueError.
        """
        ...

    @checked(id=key)
    async def delete_run(self, id: str) -> None:
        """Delete the run and its stages, steps, logs, artifacts and annotations. Unknown id: no-op.

        Outbox events, idempotency keys and jobs are not touched.
        """
        ...
