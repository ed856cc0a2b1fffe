"""Bundles for the runtime's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from workflow_adapters import Adapters, open_adapters

REFERENCE = Path(__file__).parent.parent / "postgres" / "reference_schema.sql"
BACKENDS = ["memory", "sqlite", "postgres", "postgres-bare"]

Opening = Callable[[], AbstractAsyncContextManager[Adapters]]


async def open_backend(request: pytest.FixtureRequest, name: str) -> Opening:
    """How a backend is opened; its database is there and has its schema."""
    if name == "memory":
        return lambda: open_adapters("memory://")
    if name == "sqlite":
        return lambda: open_adapters("sqlite://")
    dsn: str = await asyncio.to_thread(request.getfixturevalue, "postgres_dsn")
    if name == "postgres-bare":
        connection = await asyncpg.connect(dsn)
        await connection.execute(REFERENCE.read_text())
        await connection.close()
    else:
        async with open_adapters(dsn) as bundle:
            await bundle.migrate()
    return lambda: open_adapters(dsn)


@pytest_asyncio.fixture(params=BACKENDS)
async def adapters(request: pytest.FixtureRequest) -> AsyncGenerator[Adapters]:
    """An open bundle. It is entered and left in a task of its own: a fixture's two halves run in different ones."""
    opened: asyncio.Future[Adapters] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()
    opening = await open_backend(request, request.param)

    async def hold() -> None:
        async with opening() as bundle:
            opened.set_result(bundle)
            await done.wait()

    holding = asyncio.create_task(hold())
    yield await opened
    done.set()
    await holding
