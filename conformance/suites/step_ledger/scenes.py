"""What clauses of the step ledger set up and look at again and again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from conformance.builders import step
from conformance.context import Context
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.records.step_ledger import StepRecord

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)


async def claimed(
    ctx: Context[StepLedger], stage_record_id: str | None = None, step_id: str = "step", **fields: Any
) -> StepRecord:
    """Claim a new step, in a stage of its own unless one is named, and give its row."""
    claim = await ctx.adapter.claim(step(stage_record_id or await ctx.new_stage(), step_id, **fields))
    ctx.expect("created of the claim", claim.created).is_true()
    return claim.record


async def step_of(ctx: Context[StepLedger], record: StepRecord) -> StepRecord:
    """The step as it is stored now; it must be there."""
    found = await ctx.adapter.get(record.stage_record_id, record.step_id)
    return ctx.expect("the stored step", found).is_not_none()
