"""Connections that lead nowhere any more, without a word: whatever is asked on one has an end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from tests.postgres.proxy import Proxy
from tests.postgres.support import inside, opened, run
from workflow_adapters import BackendBusyError, BackendError, OutcomeUnknownError
from workflow_adapters.postgres import borrowed_pool, home, migrate, own_transaction, pool
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.database import TransactionDatabase

pytestmark = pytest.mark.asyncio


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are brought to rest in less time than a user's."""
    for module in (pool, borrowed_pool):
        monkeypatch.setattr(module, "_SETTLE_SECONDS", 0.1)
    for module in (migrate, own_transaction):
        monkeypatch.setattr(module, "_LEAVING_SECONDS", 0.1)
    monkeypatch.setattr(home, "_GRACE", timedelta(0))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("single", [True, False])
async def test_a_lent_connection_that_leads_nowhere_is_given_up(dsn: str, single: bool) -> None:
    """asyncpg takes it away from us as soon as it is ended, and then refuses to end it once more."""
    limits = {"statement_timeout": timedelta(milliseconds=500)}
    async with (
        Proxy(dsn).running() as proxy,
        asyncpg.create_pool(proxy.dsn, min_size=1, max_size=1) as lent,
        opened(lent, **limits) as it,
    ):
        await it.database.read(run("SELECT 1"))
        proxy.swallow()
        with pytest.raises(OutcomeUnknownError if single else BackendBusyError):
            await it.database.write(run("SELECT 1"), single=single)
        proxy.heal()
        assert await it.database.read(run("SELECT 1")) == [(1,)]
        assert it.home.pool.stats.in_use == 0


@pytest.mark.usefixtures("hurried")
async def test_leaving_a_transaction_does_not_wait_as_long_as_for_a_statement(dsn: str) -> None:
    async def fail(tx: TransactionDatabase) -> None:
        assert await tx.session.connection.fetch("SELECT 1")
        proxy.swallow()
        raise KeyError

    async with Proxy(dsn).running() as proxy, opened(proxy.dsn) as it:
        async with asyncio.timeout(10):
            with pytest.raises(KeyError):
                await inside(it.database.transaction(), fail)
        assert it.home.pool.stats == (0, 0, 0)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("is_lent", [True, False])
async def test_a_look_at_the_schema_has_an_end_too(dsn: str, is_lent: bool) -> None:
    async with (
        Proxy(dsn).running() as proxy,
        asyncpg.create_pool(proxy.dsn, min_size=0, max_size=1) as lent,
        open_postgres(lent if is_lent else proxy.dsn, statement_timeout=timedelta(milliseconds=100)) as adapters,
    ):
        await adapters.check_schema()
        proxy.swallow()
        async with asyncio.timeout(10):
            with pytest.raises(BackendBusyError):
                await adapters.check_schema()


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("reached", ["wa_migrations", "CREATE TABLE", "COMMIT", "pg_try_advisory_lock"])
async def test_a_migration_whose_connection_leads_nowhere_has_an_end(empty_dsn: str, reached: str) -> None:
    a_while = timedelta(milliseconds=1500)
    async with (
        Proxy(empty_dsn).running() as proxy,
        open_postgres(proxy.dsn, migrate_timeout=a_while, connect_timeout=a_while) as adapters,
    ):
        proxy.to_server = lambda data: reached.encode() not in data
        async with asyncio.timeout(20):
            with pytest.raises(BackendError):
                await adapters.migrate()
        proxy.heal()
        await adapters.migrate()
        await adapters.check_schema()
