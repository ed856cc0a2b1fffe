"""Databases with a schema of ours, and with nothing but the reference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from conformance.throwaway import ThrowawayServer
from tests.postgres.conftest import nothing_is_left, server, template
from tests.postgres.support import script

__all__ = ["server", "template"]

REFERENCE = Path(__file__).parents[1] / "postgres" / "reference_schema.sql"


@pytest.fixture(scope="session")
def reference_template(server: ThrowawayServer) -> str:
    dsn = server.create_database()
    asyncio.run(script(dsn, REFERENCE.read_text()))
    return dsn


@pytest.fixture
def own(server: ThrowawayServer, template: str) -> Iterator[str]:
    """A database that migrate() made."""
    with server.database(template) as dsn:
        yield dsn
        asyncio.run(nothing_is_left(dsn))


@pytest.fixture(params=["own", "reference"])
def dsn(
    request: pytest.FixtureRequest, server: ThrowawayServer, template: str, reference_template: str
) -> Iterator[str]:
    """A database of either kind."""
    with server.database(template if request.param == "own" else reference_template) as dsn:
        yield dsn
        asyncio.run(nothing_is_left(dsn))


@pytest_asyncio.fixture
async def raw(request: pytest.FixtureRequest) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the test's own to its database."""
    dsn = request.getfixturevalue("own" if "own" in request.fixturenames else "dsn")
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close(timeout=10)
