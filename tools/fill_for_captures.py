"""Fills the database of WORKFLOW_ADAPTERS_URL with a few orders, for tools/captures.sh."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import anyio

from workflow_adapters import (
    CreateAICallInput,
    CreateLogInput,
    CreateOutboxEventInput,
    CreateRunInput,
    CreateStageInput,
    EnqueueJobInput,
    LogLevel,
    Status,
    UpdateRunInput,
    open_adapters,
)


async def main() -> None:
    async with open_adapters(os.environ["WORKFLOW_ADAPTERS_URL"]) as adapters:
        for number in (1, 2, 3):
            run_id = f"order-{number}"
            await adapters.persistence.create_run(
                CreateRunInput(
                    id=run_id,
                    workflow_id="order",
                    workflow_name="Order",
                    workflow_type="order",
                    input={"item": "book", "quantity": number},
                )
            )
            await adapters.persistence.create_stage(
                CreateStageInput(
                    workflow_run_id=run_id, stage_id="charge", stage_name="Charge", stage_number=1, execution_group=1
                )
            )
            await adapters.job_queue.enqueue_parallel(
                [EnqueueJobInput(workflow_run_id=run_id, workflow_id="order", stage_id="charge", priority=10 - number)]
            )
            await adapters.persistence.append_outbox_events(
                [
                    CreateOutboxEventInput(
                        workflow_run_id=run_id,
                        event_type="order:placed",
                        payload={"item": "book"},
                        causation_id=run_id,
                        occurred_at=datetime.now(UTC),
                    )
                ]
            )
        claimed = await adapters.job_queue.dequeue()
        if claimed is not None:
            await adapters.job_queue.fail(claimed.job_id, "CardDeclined: insufficient funds", fence=claimed.fence)
        await adapters.persistence.create_log(
            CreateLogInput(level=LogLevel.ERROR, message="the card was declined", workflow_run_id="order-1")
        )
        await adapters.persistence.update_run("order-3", UpdateRunInput(status=Status.CANCELLED))
        [first, *_] = await adapters.persistence.get_unpublished_outbox_events()
        await adapters.persistence.move_outbox_event_to_dlq(first.id)
        adapters.ai_call_logger.log_call(
            CreateAICallInput(
                topic="orders/fraud",
                call_type="text",
                model_key="small",
                model_id="vendor/small-1",
                prompt="Is this order a fraud?",
                response="No.",
                input_tokens=120,
                output_tokens=2,
                cost=0.000125,
            )
        )


anyio.run(main)
