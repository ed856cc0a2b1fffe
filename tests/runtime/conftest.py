"""Bundles for the runtime's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from workflow_adapters import Adapters, open_adapters


@pytest_asyncio.fixture(params=["memory://", "sqlite://"], ids=["memory", "sqlite"])
async def adapters(request: pytest.FixtureRequest) -> AsyncGenerator[Adapters]:
    """An open bundle. It is entered and left in a task of its own: a fixture's two halves run in different ones."""
    opened: asyncio.Future[Adapters] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def hold() -> None:
        async with open_adapters(request.param) as bundle:
            opened.set_result(bundle)
            await done.wait()

    holding = asyncio.create_task(hold())
    yield await opened
    done.set()
    await holding
