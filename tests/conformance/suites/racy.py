"""Methods of the memory adapter that look first and write later: right for one caller, wrong for two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from anyio.lowlevel import checkpoint

from workflow_adapters.errors import NotFoundError
from workflow_adapters.memory import outbox, runs, stages
from workflow_adapters.memory.adapter import check_version, given
from workflow_adapters.memory.annotations import MemoryAnnotations, _new_annotation
from workflow_adapters.memory.idempotency import MemoryIdempotency, _fence
from workflow_adapters.memory.outbox import MemoryOutbox
from workflow_adapters.memory.rows import OutboxRow, detached
from workflow_adapters.memory.runs import MemoryRuns
from workflow_adapters.memory.stages import MemoryStages
from workflow_adapters.records.idempotency import Acquired
from workflow_adapters.records.status import Status

_acquire: Final = MemoryIdempotency.acquire_idempotency_key


async def claim_next_pending_run(self: Any, now: Any = None, serves: Any = None) -> Any:
    async with self._session.read() as tables:
        pending_runs = tables.runs.by_status.iterate(Status.PENDING)
        run = next((run for run in pending_runs if runs.serves_run(run, serves)), None)
    if run is None:
        return None
    await checkpoint()
    async with self._session.write() as tables:
        at = now or self._session.now()
        claimed = replace(run, status=Status.RUNNING, started_at=at, updated_at=at, version=run.version + 1)
        return detached(tables.runs.put(claimed))


async def update_run(self: Any, id: str, patch: Any) -> None:
    async with self._session.read() as tables:
        run = tables.runs.get(id)
    if run is None:
        raise NotFoundError("run", id)
    check_version("run", id, patch.expected_version, run.version)
    await checkpoint()
    async with self._session.write() as tables:
        tables.runs.put(replace(run, version=run.version + 1, updated_at=self._session.now(), **given(patch)))


async def update_stage(self: Any, id: str, patch: Any) -> None:
    async with self._session.read() as tables:
        stage = tables.stages.get(id)
    if stage is None:
        raise NotFoundError("stage", id)
    await checkpoint()
    async with self._session.write() as tables:
        tables.stages.put(stages._updated(stage, patch, self._session.now()))


async def append_outbox_events(self: Any, events: Any) -> None:
    async with self._session.read() as tables:
        last = {event.workflow_run_id: tables.outbox.by_run.last(event.workflow_run_id) for event in events}
    next_numbers = {run_id: 1 if row is None else row.event.sequence + 1 for run_id, row in last.items()}
    await checkpoint()
    async with self._session.write() as tables:
        for event in events:
            sequence = next_numbers[event.workflow_run_id]
            next_numbers[event.workflow_run_id] += 1
            tables.outbox.put(OutboxRow(event=outbox._new_event(event, sequence)))


async def claim_unpublished_outbox_events(self: Any, limit: int = 100) -> Any:
    async with self._session.read() as tables:
        now = self._session.now()
        selected = outbox.select_events(tables, self._session.home.rotation, now, limit)
    await checkpoint()
    async with self._session.write() as tables:
        return outbox._listed([tables.outbox.put(outbox._published(row, now)) for row in selected])


async def increment_outbox_retry_count(self: Any, id: str) -> int:
    async with self._session.read() as tables:
        row = outbox._event(tables, id)
    await checkpoint()
    async with self._session.write() as tables:
        count = row.event.retry_count + 1
        tables.outbox.put(replace(row, event=replace(row.event, retry_count=count)))
        return count


async def acquire_idempotency_key(
    self: Any, key: str, command_type: str, now: Any = None, stale_in_progress_after: Any = None
) -> Any:
    async with self._session.read() as tables:
        row = tables.idempotency.get((key, command_type))
        at = now or self._session.now()
    if row is None or not row.in_progress or stale_in_progress_after is None:
        return await _acquire(self, key, command_type, now, stale_in_progress_after)
    if at - row.created_at < stale_in_progress_after:
        return await _acquire(self, key, command_type, now)
    await checkpoint()
    async with self._session.write() as tables:
        held = tables.idempotency.put(replace(row, created_at=at))
        return Acquired(fence=_fence(held))


async def append_annotations(self: Any, annotations: Any) -> None:
    listed = [one for run_id in {a.workflow_run_id for a in annotations} for one in await self.list_annotations(run_id)]
    known = {(one.workflow_run_id, one.key, one.idempotency_key) for one in listed}
    await checkpoint()
    async with self._session.write() as tables:
        for each in annotations:
            if (each.workflow_run_id, each.key, each.idempotency_key) not in known:
                tables.annotations.put(_new_annotation(each, self._session.now()))


RACY: Final[dict[str, tuple[type, str, Callable[..., Any]]]] = {
    "WP-CLAIM-08": (MemoryRuns, "claim_next_pending_run", claim_next_pending_run),
    "WP-UPDATE-08": (MemoryRuns, "update_run", update_run),
    "WP-UPDATE-09": (MemoryRuns, "update_run", update_run),
    "WP-STAGE-25": (MemoryStages, "update_stage", update_stage),
    "WP-OUT-07": (MemoryOutbox, "append_outbox_events", append_outbox_events),
    "WP-FLUSH-08": (MemoryOutbox, "claim_unpublished_outbox_events", claim_unpublished_outbox_events),
    "WP-RETRY-03": (MemoryOutbox, "increment_outbox_retry_count", increment_outbox_retry_count),
    "WP-IDEM-11": (MemoryIdempotency, "acquire_idempotency_key", acquire_idempotency_key),
    "WP-ANN-11": (MemoryAnnotations, "append_annotations", append_annotations),
}
"""By the clause that sees it."""
