"""workflow_steps: the StepLedger."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.step_ledger import NewStep, StepRecordExpectation, StepRecordPatch
from workflow_adapters.memory.adapter import MemoryAdapter, given, require_stage
from workflow_adapters.memory.rows import copied, detached
from workflow_adapters.ports.step_ledger import StepLedger, SupportsClearExcept
from workflow_adapters.records.step_ledger import StepCas, StepClaim, StepRecord
from workflow_adapters.unset import UNSET


@enforces(StepLedger, SupportsClearExcept)
class MemoryStepLedger(MemoryAdapter):
    async def claim(self, step: NewStep) -> StepClaim:
        async with self._session.write() as tables:
            stored = tables.steps.get((step.stage_record_id, step.step_id))
            if stored is not None:
                return StepClaim(created=False, record=detached(stored))
            require_stage(tables, step.stage_record_id)
            now = self._session.now()
            record = StepRecord(
                stage_record_id=step.stage_record_id,
                step_id=step.step_id,
                seq=step.seq,
                kind=step.kind,
                status=step.status,
                attempt=step.attempt,
                lease_expires_at=step.lease_expires_at,
                deadline_at=step.deadline_at,
                external_key=step.external_key,
                result=copied(step.result),
                error=step.error,
                wait_state=copied(step.wait_state),
                created_at=now,
                updated_at=now,
            )
            return StepClaim(created=True, record=detached(tables.steps.put(record)))

    async def get(self, stage_record_id: str, step_id: str) -> StepRecord | None:
        async with self._session.read() as tables:
            step = tables.steps.get((stage_record_id, step_id))
            return None if step is None else detached(step)

    async def update(self, stage_record_id: str, step_id: str, patch: StepRecordPatch) -> StepRecord:
        async with self._session.write() as tables:
            step = tables.steps.get((stage_record_id, step_id))
            if step is None:
                raise NotFoundError("step", f"{stage_record_id}/{step_id}")
            return detached(tables.steps.put(replace(step, updated_at=self._session.now(), **given(patch))))

    async def compare_and_set(
        self, stage_record_id: str, step_id: str, expected: StepRecordExpectation, patch: StepRecordPatch
    ) -> StepCas:
        async with self._session.write() as tables:
            step = tables.steps.get((stage_record_id, step_id))
            if step is None:
                return StepCas(applied=False, record=None)
            if step.status != expected.status or expected.attempt not in (UNSET, step.attempt):
                return StepCas(applied=False, record=detached(step))
            changed = replace(step, updated_at=self._session.now(), **given(patch))
            return StepCas(applied=True, record=detached(tables.steps.put(changed)))

    async def list(self, stage_record_id: str) -> builtins.list[StepRecord]:
        async with self._session.read() as tables:
            return [detached(step) for step in tables.steps.by_stage[stage_record_id]]

    async def clear(self, stage_record_id: str) -> None:
        await self.clear_except(stage_record_id, ())

    async def clear_except(self, stage_record_id: str, keep_step_ids: Sequence[str]) -> None:
        async with self._session.write() as tables:
            kept = set(keep_step_ids)
            for step in tables.steps.by_stage[stage_record_id]:
                if step.step_id not in kept:
                    tables.steps.remove(step)
