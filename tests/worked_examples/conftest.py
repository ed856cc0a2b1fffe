"""The schema is made once, and copied for each example."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from conformance.throwaway import ThrowawayServer
from workflow_adapters import open_adapters


@pytest.fixture(scope="session")
def postgres_template(postgres_server: ThrowawayServer) -> Iterator[str]:
    async def migrate(dsn: str) -> None:
        async with open_adapters(dsn) as adapters:
            await adapters.migrate()

    with postgres_server.database() as dsn:
        asyncio.run(migrate(dsn))
        yield dsn
