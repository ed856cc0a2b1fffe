"""Rows of an earlier clause that a later one can see: then no answer of the adapter means anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import anyio

from conformance.clause import Port
from conformance.concurrency import is_asked_for
from conformance.wording import counted
from workflow_adapters.ports.ai_call_logger import AICallLogger
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import PURGEABLE_STATUSES

_FAR: Final = datetime(9999, 1, 1, tzinfo=UTC)
_SECONDS: Final = 2.0
_MOST_IDS: Final = 3


class NoAnswerError(Exception):
    """The adapter does not answer readers in time."""


async def residue(port: Port, adapter: object, earlier_ids: Sequence[str]) -> str | None:
    """What is still there, in words, or None. `earlier_ids` are runs and stages of the clause before.

    Whatever else the adapter does wrong here is the clauses' to find.
    """
    with anyio.move_on_after(_SECONDS) as scope:
        try:
            return await _LOOKS[port](adapter, earlier_ids)
        except BaseException as error:
            if is_asked_for(error):
                raise
    if scope.cancelled_caught:
        raise NoAnswerError
    return None


async def _of_persistence(adapter: WorkflowPersistence, _: Sequence[str]) -> str | None:
    found: Any = (
        await adapter.get_unpublished_outbox_events(1)
        or await adapter.list_runs_for_purge(_FAR, sorted(PURGEABLE_STATUSES), 1)
        or await adapter.get_stuck_runs(_FAR)
        or await adapter.get_suspended_stages(_FAR, 1)
    )
    return f"{type(found[0]).__name__} {found[0].id}" if found else None


async def _of_queue(adapter: JobQueue, runs: Sequence[str]) -> str | None:
    for run_id in runs[-_MOST_IDS:]:
        if jobs := await adapter.get_jobs_by_workflow_run(run_id):
            return f"job {jobs[0].id} of run {run_id}"
    return None


async def _of_ledger(adapter: StepLedger, stages: Sequence[str]) -> str | None:
    for stage_record_id in stages[-_MOST_IDS:]:
        if steps := await adapter.list(stage_record_id):
            return f"step {steps[0].step_id} of stage {stage_record_id}"
    return None


async def _of_logger(adapter: AICallLogger, _: Sequence[str]) -> str | None:
    calls = (await adapter.get_stats("")).total_calls
    return counted(calls, "call") if calls else None


_LOOKS: Final[Mapping[Port, Callable[[Any, Sequence[str]], Awaitable[str | None]]]] = {
    Port.WORKFLOW_PERSISTENCE: _of_persistence,
    Port.JOB_QUEUE: _of_queue,
    Port.STEP_LEDGER: _of_ledger,
    Port.AI_CALL_LOGGER: _of_logger,
}
