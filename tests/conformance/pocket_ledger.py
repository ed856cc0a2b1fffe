"""A small StepLedger for tests of the harness itself: correct, and made to misbehave by subclasses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

import anyio

from conformance.backend import Env, Fixture
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.step_ledger import NewStep, StepRecordExpectation, StepRecordPatch
from workflow_adapters.records.step_ledger import StepCas, StepClaim, StepRecord
from workflow_adapters.unset import UNSET


class Rows(dict[tuple[str, str], StepRecord]):
    """The steps of one namespace, shared by all ledgers on it."""


STORES: WeakValueDictionary[str, Rows] = WeakValueDictionary()


class PocketLedger:
    def __init__(self, env: Env) -> None:
        self.rows = STORES.setdefault(env.namespace, Rows())
        self.clock = env.clock

    async def claim(self, step: NewStep) -> StepClaim:
        await anyio.lowlevel.checkpoint()
        key = (step.stage_record_id, step.step_id)
        created = key not in self.rows
        if created:
            self.rows[key] = _record(step, self.clock.now())
        return StepClaim(created=created, record=self.rows[key])

    async def get(self, stage_record_id: str, step_id: str) -> StepRecord | None:
        await anyio.lowlevel.checkpoint()
        return self.rows.get((stage_record_id, step_id))

    async def update(self, stage_record_id: str, step_id: str, patch: StepRecordPatch) -> StepRecord:
        await anyio.lowlevel.checkpoint()
        key = (stage_record_id, step_id)
        if key not in self.rows:
            raise NotFoundError("step", "/".join(key))
        self.rows[key] = self._patched(self.rows[key], patch)
        return self.rows[key]

    async def compare_and_set(
        self, stage_record_id: str, step_id: str, expected: StepRecordExpectation, patch: StepRecordPatch
    ) -> StepCas:
        await anyio.lowlevel.checkpoint()
        key = (stage_record_id, step_id)
        stored = self.rows.get(key)
        applied = (
            stored is not None and stored.status is expected.status and expected.attempt in (UNSET, stored.attempt)
        )
        if stored is not None and applied:
            self.rows[key] = self._patched(stored, patch)
        return StepCas(applied=applied, record=self.rows.get(key))

    async def list(self, stage_record_id: str) -> list[StepRecord]:
        await anyio.lowlevel.checkpoint()
        found = [record for (stage, _), record in self.rows.items() if stage == stage_record_id]
        return sorted(found, key=lambda record: (record.seq, record.step_id))

    async def clear(self, stage_record_id: str) -> None:
        await self.clear_except(stage_record_id, [])

    async def clear_except(self, stage_record_id: str, keep_step_ids: Sequence[str]) -> None:
        await anyio.lowlevel.checkpoint()
        for stage, step in list(self.rows):
            if stage == stage_record_id and step not in keep_step_ids:
                del self.rows[stage, step]

    def _patched(self, record: StepRecord, patch: StepRecordPatch) -> StepRecord:
        given: dict[str, Any] = {item.name: getattr(patch, item.name) for item in fields(patch)}
        changes = {name: value for name, value in given.items() if value is not UNSET}
        return replace(record, updated_at=self.clock.now(), **changes)


def _record(step: NewStep, now: datetime) -> StepRecord:
    given: dict[str, Any] = {item.name: getattr(step, item.name) for item in fields(step)}
    return StepRecord(created_at=now, updated_at=now, **given)


@asynccontextmanager
async def pocket(env: Env) -> AsyncGenerator[PocketLedger]:
    """A factory with no reset: every namespace is a store of its own."""
    await anyio.lowlevel.checkpoint()
    yield PocketLedger(env)


@asynccontextmanager
async def pocket_with_reset(env: Env) -> AsyncGenerator[Fixture[PocketLedger]]:
    ledger = PocketLedger(env)

    async def reset() -> None:
        await anyio.lowlevel.checkpoint()
        ledger.rows.clear()

    yield Fixture(adapter=ledger, reset=reset)
