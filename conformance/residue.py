"""Rows of an earlier clause that a later one can see: then no answer of the adapter means anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from conformance.clause import Port
from workflow_adapters.ports.ai_call_logger import AICallLogger
from workflow_adapters.ports.job_queue import JobQueue
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import PURGEABLE_STATUSES

_FAR: Final = datetime(9999, 1, 1, tzinfo=UTC)


async def residue(port: Port, adapter: object, earlier_ids: Sequence[str]) -> str | None:
    """What is still there, in words, or None. `earlier_ids` are runs and stages of the clause before.

    Whatever the adapter does wrong here is the clauses' to find.
    """
    try:
        match port:
            case Port.WORKFLOW_PERSISTENCE:
                return await _of_persistence(cast("WorkflowPersistence", adapter))
            case Port.JOB_QUEUE:
                return await _of_queue(cast("JobQueue", adapter), earlier_ids)
            case Port.STEP_LEDGER:
                return await _of_ledger(cast("StepLedger", adapter), earlier_ids)
            case Port.AI_CALL_LOGGER:
                return await _of_logger(cast("AICallLogger", adapter))
    except Exception:  # noqa: BLE001 - a reader that fails has shown no row
        return None


async def _of_persistence(adapter: WorkflowPersistence) -> str | None:
    found: Any = (
        await adapter.get_unpublished_outbox_events(1)
        or await adapter.list_runs_for_purge(_FAR, sorted(PURGEABLE_STATUSES), 1)
        or await adapter.get_stuck_runs(_FAR)
        or await adapter.get_suspended_stages(_FAR, 1)
    )
    return f"{type(found[0]).__name__} {found[0].id}" if found else None


async def _of_queue(adapter: JobQueue, runs: Sequence[str]) -> str | None:
    for run_id in runs:
        if jobs := await adapter.get_jobs_by_workflow_run(run_id):
            return f"job {jobs[0].id} of run {run_id}"
    return None


async def _of_ledger(adapter: StepLedger, stages: Sequence[str]) -> str | None:
    for stage_record_id in stages:
        if steps := await adapter.list(stage_record_id):
            return f"step {steps[0].step_id} of stage {stage_record_id}"
    return None


async def _of_logger(adapter: AICallLogger) -> str | None:
    calls = (await adapter.get_stats("")).total_calls
    return f"{calls} call(s)" if calls else None
