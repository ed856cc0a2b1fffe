"""A migrated database for each test, and a look at what a test leaves behind on the server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
import pytest_asyncio

from conformance.throwaway import ThrowawayServer, blocking_postgres
from tests.postgres.left_behind import IN_TRANSACTION_OR_OURS, gone_from
from tests.postgres.support import migrated, script
from tests.throwaway.support import server_or_skip


@pytest.fixture(scope="session")
def server() -> Iterator[ThrowawayServer]:
    with blocking_postgres("embedded-16", shared_as=os.environ.get("PYTEST_XDIST_TESTRUNUID")) as server:
        yield server


@pytest.fixture(scope="session")
def template(server: ThrowawayServer) -> str:
    dsn = server.create_database()
    asyncio.run(migrated(dsn))
    return dsn


@pytest.fixture
def dsn(server: ThrowawayServer, template: str) -> Iterator[str]:
    """A migrated database."""
    with server.database(template) as dsn:
        yield dsn
        asyncio.run(nothing_is_left(dsn))


@pytest.fixture
def empty_dsn(server: ThrowawayServer) -> Iterator[str]:
    """A database with nothing in it."""
    with server.database() as dsn:
        yield dsn
        asyncio.run(nothing_is_left(dsn))


@pytest.fixture(scope="module", params=["local-15", "embedded-18"])
def other_server(request: pytest.FixtureRequest) -> Iterator[ThrowawayServer]:
    with server_or_skip(request.param) as server:
        yield server


async def nothing_is_left(dsn: str) -> None:
    """Of every connection that was opened while a test ran, none may be in a transaction, and ours must be gone."""
    await gone_from(dsn, IN_TRANSACTION_OR_OURS)


@pytest_asyncio.fixture
async def things(dsn: str) -> str:
    await script(dsn, "CREATE TABLE things (id text PRIMARY KEY)")
    return dsn
