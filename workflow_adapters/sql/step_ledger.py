"""workflow_steps: the StepLedger."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime

from workflow_adapters.arguments import enforces
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ids import new_id
from workflow_adapters.inputs.step_ledger import NewStep, StepRecordExpectation, StepRecordPatch
from workflow_adapters.ports.step_ledger import StepLedger, SupportsClearExcept
from workflow_adapters.records.step_ledger import StepCas, StepClaim, StepRecord
from workflow_adapters.sql.columns import json_argument
from workflow_adapters.sql.database import SqlPort
from workflow_adapters.sql.mapping import set_list
from workflow_adapters.sql.results import ATTEMPTS, every, first, given, lost_race, none, require_parents
from workflow_adapters.sql.statement import Argument, Operation, Statement
from workflow_adapters.sql.tables import STEP


@enforces(StepLedger, SupportsClearExcept)
class SqlStepLedger(SqlPort):
    async def claim(self, step: NewStep) -> StepClaim:
        insert = Statement(
            """
            INSERT INTO @workflow_steps (
                id, "createdAt", "updatedAt", "stageRecordId", "stepId", seq, kind, status, attempt, "leaseExpiresAt",
                "deadlineAt", "externalKey", result, error, "waitState"
            )
            SELECT
                $1, $2::text::timestamp, $2::text::timestamp, s.id, $4, $5::int, $6, $7, $8::int, $9::text::timestamp,
                $10::text::timestamp, $11, $12::text::jsonb, $13, $14::text::jsonb
            FROM @workflow_stages s
            WHERE s.id = $3
            FOR KEY SHARE
            ON CONFLICT ("stageRecordId", "stepId") DO NOTHING
            RETURNING @step.columns
            """,
            _values(step, self._database.now()),
        )

        def operation() -> Operation[StepClaim]:
            for _ in range(ATTEMPTS):
                if rows := (yield insert):
                    return StepClaim(created=True, record=STEP.read(rows[0]))
                stored = yield from first(STEP, _step(step.stage_record_id, step.step_id))
                if stored is not None:
                    return StepClaim(created=False, record=stored)
                yield from require_parents((), (step.stage_record_id,))
            raise lost_race(f"the step {step.stage_record_id}/{step.step_id}")

        return await self._database.write(operation, single=True)

    async def get(self, stage_record_id: str, step_id: str) -> StepRecord | None:
        return await self._database.read(lambda: first(STEP, _step(stage_record_id, step_id)))

    async def update(self, stage_record_id: str, step_id: str, patch: StepRecordPatch) -> StepRecord:
        sets = set_list(STEP, patch, first=4)
        update = Statement(
            f"""
            UPDATE @workflow_steps
            SET "updatedAt" = $3::text::timestamp{sets.text}
            WHERE "stageRecordId" = $1 AND "stepId" = $2
            RETURNING @step.columns
            """,
            (stage_record_id, step_id, self._database.now(), *sets.args),
        )

        def operation() -> Operation[StepRecord]:
            record = yield from first(STEP, update)
            if record is None:
                raise NotFoundError("step", f"{stage_record_id}/{step_id}")
            return record

        return await self._database.write(operation, single=True)

    async def compare_and_set(
        self, stage_record_id: str, step_id: str, expected: StepRecordExpectation, patch: StepRecordPatch
    ) -> StepCas:
        sets = set_list(STEP, patch, first=6)
        update = Statement(
            f"""
            UPDATE @workflow_steps
            SET "updatedAt" = $3::text::timestamp{sets.text}
            WHERE "stageRecordId" = $1 AND "stepId" = $2 AND status = $4 AND ($5::int IS NULL OR attempt = $5::int)
            RETURNING @step.columns
            """,
            (stage_record_id, step_id, self._database.now(), expected.status, given(expected.attempt), *sets.args),
        )

        def operation() -> Operation[StepCas]:
            written = yield from first(STEP, update)
            if written is not None:
                return StepCas(applied=True, record=written)
            return StepCas(applied=False, record=(yield from first(STEP, _step(stage_record_id, step_id))))

        return await self._database.write(operation, single=True)

    async def list(self, stage_record_id: str) -> builtins.list[StepRecord]:
        statement = Statement(
            """
            SELECT @step.columns
            FROM @workflow_steps
            WHERE "stageRecordId" = $1
            ORDER BY seq, "stepId" COLLATE "C"
            """,
            (stage_record_id,),
        )
        return await self._database.read(lambda: every(STEP, statement))

    async def clear(self, stage_record_id: str) -> None:
        statement = Statement('DELETE FROM @workflow_steps WHERE "stageRecordId" = $1', (stage_record_id,))
        await self._database.write(lambda: none(statement), single=True)

    async def clear_except(self, stage_record_id: str, keep_step_ids: Sequence[str]) -> None:
        statement = Statement(
            'DELETE FROM @workflow_steps WHERE "stageRecordId" = $1 AND "stepId" <> ALL($2::text[])',
            (stage_record_id, keep_step_ids),
        )
        await self._database.write(lambda: none(statement), single=True)


def _values(step: NewStep, now: datetime) -> tuple[Argument, ...]:
    return (
        new_id(),
        now,
        step.stage_record_id,
        step.step_id,
        step.seq,
        step.kind,
        step.status,
        step.attempt,
        step.lease_expires_at,
        step.deadline_at,
        step.external_key,
        json_argument(step.result),
        step.error,
        json_argument(step.wait_state),
    )


def _step(stage_record_id: str, step_id: str) -> Statement:
    return Statement(
        'SELECT @step.columns FROM @workflow_steps WHERE "stageRecordId" = $1 AND "stepId" = $2',
        (stage_record_id, step_id),
    )
