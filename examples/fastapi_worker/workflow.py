"""The order workflow: reserve, charge, ship. Each stage's writes and its job's completion commit together."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import anyio

from examples.fastapi_worker.orders import orders
from workflow_adapters import (
    CreateOutboxEventInput,
    CreateRunInput,
    CreateStageInput,
    EnqueueJobInput,
    JsonValue,
    NewStep,
    Status,
    StepKind,
    StepRecordPatch,
    StepStatus,
    TransactionAdapters,
    UpdateRunInput,
    UpdateStageInput,
    UpsertStageInput,
)
from workflow_adapters.runtime import JobContext

WORKFLOW = "order"
STAGES = ("reserve", "charge", "ship")


async def start_order(tx: TransactionAdapters, order_id: str, item: str, quantity: int) -> None:
    """The business row, the run, its first job and its first event."""
    await orders(tx).insert(order_id, item, quantity)
    await tx.persistence.create_run(
        CreateRunInput(
            id=order_id,
            workflow_id=WORKFLOW,
            workflow_name="Order",
            workflow_type=WORKFLOW,
            input={"item": item, "quantity": quantity},
        )
    )
    await _enqueue(tx, order_id, STAGES[0])
    await _append(tx, order_id, "order:placed", {"item": item})


async def handle(ctx: JobContext) -> None:
    """One stage of one order."""
    run_id, stage_id = ctx.job.workflow_run_id, ctx.job.stage_id
    number = STAGES.index(stage_id)
    stage = await ctx.adapters.persistence.upsert_stage(
        UpsertStageInput(
            create=CreateStageInput(
                workflow_run_id=run_id,
                stage_id=stage_id,
                stage_name=stage_id,
                stage_number=number,
                execution_group=number,
                attempt=ctx.job.attempt,
            ),
            update=UpdateStageInput(status=Status.RUNNING, attempt=ctx.job.attempt),
        )
    )
    await ctx.adapters.step_ledger.claim(
        NewStep(stage_record_id=stage.id, step_id="work", seq=1, kind=StepKind.RUN, status=StepStatus.RUNNING)
    )
    # Where a real service would call somebody; the tests make it slow and kill the process in the middle.
    await anyio.sleep(float(os.environ.get("ORDERS_WORK_SECONDS", "0.05")))
    async with ctx.transaction() as tx:
        if stage_id == "charge":
            await orders(tx).charge(run_id)
        done = UpdateStageInput(status=Status.COMPLETED, completed_at=datetime.now(UTC))
        await tx.persistence.update_stage(stage.id, done)
        await tx.step_ledger.update(stage.id, "work", StepRecordPatch(status=StepStatus.COMPLETED))
        await _append(tx, run_id, "order:stage-completed", {"stage": stage_id})
        if stage_id == STAGES[-1]:
            end = UpdateRunInput(status=Status.COMPLETED, completed_at=datetime.now(UTC))
            await tx.persistence.update_run(run_id, end)
        else:
            await _enqueue(tx, run_id, STAGES[number + 1])


async def _enqueue(tx: TransactionAdapters, order_id: str, stage_id: str) -> None:
    job = EnqueueJobInput(workflow_run_id=order_id, workflow_id=WORKFLOW, stage_id=stage_id)
    await tx.job_queue.enqueue_parallel([job])


async def _append(tx: TransactionAdapters, order_id: str, event_type: str, payload: dict[str, JsonValue]) -> None:
    event: dict[str, Any] = {"event_type": event_type, "payload": payload, "causation_id": order_id}
    created = CreateOutboxEventInput(workflow_run_id=order_id, occurred_at=datetime.now(UTC), **event)
    await tx.persistence.append_outbox_events([created])
