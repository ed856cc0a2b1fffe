"""Contract of the StepLedger port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.step_ledger import NewStep, StepRecordExpectation, StepRecordPatch
from workflow_adapters.records.step_ledger import StepCas, StepClaim, StepRecord
from workflow_adapters.validation import instance, key, sequence


@runtime_checkable
class StepLedger(Protocol):
    """Durable steps of stages, unique on (stage_record_id, step_id): the first write wins."""

    @checked(step=instance(NewStep))
    async def claim(self, step: NewStep) -> StepClaim:
        """Insert the step if absent; an existing row wins and comes back unchanged.

        Of any number of racing claims exactly one has created=True. Never raises on the conflict and never aborts the
        caller's transaction. Where the schema has the foreign key an unknown stage is a NotFoundError.
        """
        ...

    @checked(stage_record_id=key, step_id=key)
    async def get(self, stage_record_id: str, step_id: str) -> StepRecord | None:
        """The step, or None."""
        ...

    @checked(stage_record_id=key, step_id=key, patch=instance(StepRecordPatch))
    async def update(self, stage_record_id: str, step_id: str, patch: StepRecordPatch) -> StepRecord:
        """Write the patch and return the row. Absent step: NotFoundError with the id ``"stage/step"``."""
        ...

    @checked(
        stage_record_id=key,
        step_id=key,
        expected=instance(StepRecordExpectation),
        patch=instance(StepRecordPatch),
    )
    async def compare_and_set(
        self, stage_record_id: str, step_id: str, expected: StepRecordExpectation, patch: StepRecordPatch
    ) -> StepCas:
        """Write the patch only if the row is as expected, in one statement; of racing writers exactly one applies."""
        ...

    @checked(stage_record_id=key)
    async def list(self, stage_record_id: str) -> list[StepRecord]:
        """Steps of the stage, by seq, then step_id."""
        ...

    @checked(stage_record_id=key)
    async def clear(self, stage_record_id: str) -> None:
        """Delete every step of the stage."""
        ...


@runtime_checkable
class SupportsClearExcept(Protocol):
    """Clearing all steps but some."""

    @checked(stage_record_id=key, keep_step_ids=sequence(key))
    async def clear_except(self, stage_record_id: str, keep_step_ids: Sequence[str]) -> None:
        """Delete the steps of the stage that are not listed; an empty list clears everything."""
        ...
