"""The application: ``uvicorn examples.fastapi_worker.app:app``; ORDERS_URL names the database (SQLite by default)."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response
from pydantic import BaseModel, Field

from examples.fastapi_worker.orders import OrderReader, open_order_reader, orders
from examples.fastapi_worker.workflow import handle, start_order
from workflow_adapters import (
    Acquired,
    Adapters,
    InProgress,
    OutboxRecord,
    Replay,
    new_id,
    open_adapters,
)
from workflow_adapters.runtime import WorkflowService
from workflow_adapters.runtime.fastapi import health_router, workflow_lifespan, workflow_service

URL = os.environ.get("ORDERS_URL", "sqlite:///orders.db")
LEASE = timedelta(seconds=float(os.environ.get("ORDERS_LEASE_SECONDS", "30")))
PLACE_ORDER = "place-order"

logger = logging.getLogger("orders")


async def publish(event: OutboxRecord) -> None:
    """A real service would hand the event to its message broker."""
    logger.info("event %s #%d: %s", event.workflow_run_id, event.sequence, event.event_type)


_service = workflow_lifespan(
    lambda: open_adapters(URL),
    handle,
    sink=publish,
    migrate=True,
    worker={"concurrency": 4, "lease": LEASE, "poll_interval": timedelta(milliseconds=200)},
    reaper={"every": LEASE / 5},
    relay={"every": timedelta(milliseconds=200)},
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with _service(app):
        async with app.state.workflow.adapters.transaction() as tx:
            await orders(tx).create_table()
        async with open_order_reader(URL) as reader:
            app.state.order_reader = reader
            yield


app = FastAPI(title="Orders", lifespan=lifespan)
app.include_router(health_router)


def bundle(service: Annotated[WorkflowService, Depends(workflow_service)]) -> Adapters:
    return service.adapters


def order_reader(request: Request) -> OrderReader:
    return request.app.state.order_reader


Bundle = Annotated[Adapters, Depends(bundle)]
Reader = Annotated[OrderReader, Depends(order_reader)]


class Order(BaseModel):
    """What a customer orders."""

    item: str = Field(min_length=1, max_length=100)
    quantity: int = Field(gt=0, le=1000)


@app.post("/orders", status_code=202)
async def place_order(
    order: Order, adapters: Bundle, response: Response, idempotency_key: Annotated[str | None, Header()] = None
) -> dict[str, Any]:
    """Place an order. A request that is repeated with its Idempotency-Key gets the first one's answer."""
    body: Any = {"order_id": new_id(), "status": "PENDING"}
    async with adapters.transaction() as tx:
        if idempotency_key is not None:
            # In the order's own transaction: the key is taken if and only if the order is there.
            match await tx.persistence.acquire_idempotency_key(idempotency_key, PLACE_ORDER):
                case Replay(result=earlier):
                    response.headers["Idempotency-Replayed"] = "true"
                    return earlier  # type: ignore[return-value]  # what was stored below
                case InProgress():
                    raise HTTPException(409, "this request is being processed")
                case Acquired(fence=fence):
                    await tx.persistence.complete_idempotency_key(idempotency_key, PLACE_ORDER, body, fence)
        await start_order(tx, body["order_id"], order.item, order.quantity)
    return body


@app.get("/orders/{order_id}")
async def show_order(order_id: str, adapters: Bundle, reader: Reader) -> dict[str, Any]:
    """The order's run with its stages and their steps."""
    run = await adapters.persistence.get_run(order_id)
    if run is None:
        raise HTTPException(404, f"order {order_id} does not exist")
    stages = await adapters.persistence.get_stages_by_run(order_id)
    return {
        "order_id": order_id,
        "status": run.status.value,
        "times_charged": await reader.times_charged(order_id),
        "stages": [
            {
                "stage": stage.stage_id,
                "status": stage.status.value,
                "attempt": stage.attempt,
                "steps": [
                    {"step": step.step_id, "status": step.status.value}
                    for step in await adapters.step_ledger.list(stage.id)
                ],
            }
            for stage in stages
        ],
    }
