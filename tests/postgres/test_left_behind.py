"""A test that leaves a transaction open fails: in the fixtures, in a clause, and wherever a database is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from conformance.backend import Env, Fixture
from conformance.throwaway import ThrowawayServer
from tests.conformance.bundles import Open
from tests.conformance.postgres_backend import open_on_postgres
from tests.postgres import profiles
from tests.postgres.conftest import nothing_is_left
from workflow_adapters.clock import ManualClock
from workflow_adapters.ports.adapters import Adapters

pytestmark = pytest.mark.asyncio
LEFT = "left behind.*idle in transaction"


@asynccontextmanager
async def open_transaction(dsn: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("BEGIN; SELECT 1")
        yield
    finally:
        await connection.close(timeout=10)


async def test_the_fixtures_see_it(dsn: str) -> None:
    async with open_transaction(dsn):
        with pytest.raises(AssertionError, match=LEFT):
            await nothing_is_left(dsn)


async def test_who_drops_the_database_sees_it(server: ThrowawayServer) -> None:
    dsn = server.create_database()
    async with open_transaction(dsn):
        with pytest.raises(AssertionError, match=LEFT):
            await asyncio.to_thread(server.drop_database, dsn)


@pytest.mark.parametrize(
    "opening", [open_on_postgres, profiles.backend(schema=profiles.REFERENCE)], ids=["our schema", "the reference"]
)
async def test_the_next_clause_sees_it(empty_dsn: str, tmp_path: Path, opening: Open) -> None:
    env = Env(namespace=uuid4().hex, instance="A", seed=1, tmp_path=tmp_path, dsn=empty_dsn, clock=ManualClock())
    async with opening(env) as fixture:
        await emptied(fixture)
        async with open_transaction(empty_dsn):
            with pytest.raises(AssertionError, match=LEFT):
                await emptied(fixture)


async def emptied(fixture: Fixture[Adapters]) -> None:
    assert fixture.reset is not None
    await fixture.reset()
