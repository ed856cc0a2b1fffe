"""Durable steps: what has finished is not run again, whoever takes the job over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from examples.document_pipeline.journal import Journal
from workflow_adapters import (
    JsonValue,
    NewStep,
    StepKind,
    StepLedger,
    StepRecordExpectation,
    StepRecordPatch,
    StepStatus,
)


@dataclass(frozen=True)
class Steps:
    """The steps of one stage."""

    ledger: StepLedger
    journal: Journal
    stage_record_id: str
    attempt: int

    async def run(self, seq: int, step_id: str, body: Callable[[], JsonValue]) -> JsonValue:
        """The stored result of a finished step, or that of running `body` now."""
        claim = await self.ledger.claim(
            NewStep(
                stage_record_id=self.stage_record_id,
                step_id=step_id,
                seq=seq,
                kind=StepKind.RUN,
                status=StepStatus.RUNNING,
                attempt=self.attempt,
            )
        )
        if claim.record.status is StepStatus.COMPLETED:
            self.journal.note("kept a finished step", step=step_id)
            return claim.record.result
        if not claim.created:
            await self._take_over(step_id, claim.record.attempt)
        result = body()
        self.journal.note("step ran", stage=self.stage_record_id, step=step_id)
        await self.ledger.compare_and_set(
            self.stage_record_id,
            step_id,
            StepRecordExpectation(status=StepStatus.RUNNING, attempt=self.attempt),
            StepRecordPatch(status=StepStatus.COMPLETED, result=result),
        )
        return result

    async def _take_over(self, step_id: str, earlier_attempt: int) -> None:
        """A worker died in the middle of this step: the attempt that owns the job owns its steps."""
        await self.ledger.compare_and_set(
            self.stage_record_id,
            step_id,
            StepRecordExpectation(status=StepStatus.RUNNING, attempt=earlier_attempt),
            StepRecordPatch(attempt=self.attempt),
        )
