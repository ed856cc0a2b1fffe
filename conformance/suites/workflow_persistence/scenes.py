"""What clauses of persistence set up and look at again and again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from conformance.builders import run, stage
from conformance.context import Context
from conformance.suites.values import ALIKE
from workflow_adapters.inputs.runs import ServedDefinition, UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.status import Status

MS: Final = timedelta(milliseconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)


class Broken(Exception):  # noqa: N818 - what a host raises is no error of ours
    """Raised inside a block that is to be rolled back."""


async def new_run(ctx: Context[WorkflowPersistence], **fields: Any) -> WorkflowRunRecord:
    """Create a run under a fresh id."""
    return await ctx.adapter.create_run(run(**({"id": ctx.new_id("run")} | fields)))


async def runs_alike(ctx: Context[WorkflowPersistence]) -> list[tuple[str, str]]:
    """Ids of new runs, each with a name: pairs that are two and two the same when they are joined."""
    fresh = ctx.new_id("run")
    pairs = [(f"{fresh}{first}", second) for first, second in ALIKE]
    for run_id in dict.fromkeys(run_id for run_id, _ in pairs):
        await new_run(ctx, id=run_id)
    return pairs


async def run_in(ctx: Context[WorkflowPersistence], status: Status, **fields: Any) -> WorkflowRunRecord:
    """Create a run and bring it into a status."""
    created = await new_run(ctx, **fields)
    await ctx.adapter.update_run(created.id, UpdateRunInput(status=status))
    return await run_of(ctx, created.id)


async def run_of(ctx: Context[WorkflowPersistence], run_id: str) -> WorkflowRunRecord:
    """The stored run, which must be there."""
    return ctx.expect("the stored run", await ctx.adapter.get_run(run_id)).is_not_none()


async def new_stage(
    ctx: Context[WorkflowPersistence], run_id: str | None = None, stage_id: str = "stage", **fields: Any
) -> WorkflowStageRecord:
    """Create a stage, in a run of its own unless one is named."""
    return await ctx.adapter.create_stage(stage(run_id or await ctx.new_run(), stage_id, **fields))


async def stage_of(ctx: Context[WorkflowPersistence], stored: WorkflowStageRecord) -> WorkflowStageRecord:
    """The stage as it is stored now; it must be there."""
    found = await ctx.adapter.get_stage(stored.workflow_run_id, stored.stage_id)
    return ctx.expect("the stored stage", found).is_not_none()


async def suspended_stage(
    ctx: Context[WorkflowPersistence], run_id: str | None = None, stage_id: str = "stage", **patch: Any
) -> WorkflowStageRecord:
    """Create a stage that is SUSPENDED."""
    created = await new_stage(ctx, run_id, stage_id)
    await ctx.adapter.update_stage(created.id, UpdateStageInput(status=Status.SUSPENDED, **patch))
    return await stage_of(ctx, created)


def served(workflow_id: str, version: str = "v1") -> ServedDefinition:
    return ServedDefinition(workflow_id=workflow_id, version=version)
