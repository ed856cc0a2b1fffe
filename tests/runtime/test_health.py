"""What a health endpoint tells the outside, and what it keeps for the log."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from workflow_adapters import BackendUnavailableError, SchemaError, open_adapters
from workflow_adapters.memory.operations import MemoryOperations
from workflow_adapters.runtime.fastapi import health_router, workflow_lifespan

pytestmark = pytest.mark.asyncio
SECRET = "role app at db.internal:5432"
ERRORS = [
    BackendUnavailableError(f"no answer to {SECRET}"),
    SchemaError([f"table of {SECRET}"], SECRET),
    TimeoutError(),
]


async def handle(ctx: object) -> None:
    return None


@asynccontextmanager
async def serving() -> AsyncGenerator[httpx.AsyncClient]:
    lifespan = workflow_lifespan(lambda: open_adapters("memory://"), handle)
    app = FastAPI(lifespan=lifespan)
    app.include_router(health_router)
    async with lifespan(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
        yield client


async def test_a_working_service_is_ready() -> None:
    async with serving() as client:
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (200, True)
        assert (await client.get("/healthz")).json()["queue"]["depth"]["PENDING"] == 0


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_the_text_of_an_error_is_in_the_log_alone(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(self: Any) -> None:
        raise error

    async with serving() as client:
        monkeypatch.setattr(MemoryOperations, "queue_stats", fail)
        alive, ready = await client.get("/healthz"), await client.get("/readyz")
    assert (alive.status_code, ready.status_code) == (200, 503)
    for answer in (alive, ready):
        assert answer.json() == {"ready": False, "reason": type(error).__name__, "worker": {"running": 0}}
    told = [record for record in caplog.records if getattr(record, "event", "") == "health_check_failed"]
    assert [vars(record)["error"] for record in told] == [repr(error)] * 2
