"""Connections that break: before anything was sent, in the middle, at COMMIT; and what the next call does."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest
import pytest_asyncio

from tests.postgres.proxy import Proxy
from tests.postgres.support import (
    Opened,
    backends,
    end_backends,
    ids,
    inside,
    is_asleep,
    opened,
    put,
    run,
    script,
    until,
)
from workflow_adapters import (
    BackendBusyError,
    BackendUnavailableError,
    ConfigurationError,
    OutcomeUnknownError,
)
from workflow_adapters.postgres.connection import Connection
from workflow_adapters.postgres.database import TransactionDatabase
from workflow_adapters.postgres.detect import PostgresFacts

pytestmark = pytest.mark.asyncio

# As we say it, and as asyncpg does.
COMMIT = (b"COMMIT\0", b"COMMIT;")


@pytest_asyncio.fixture
async def things(dsn: str) -> str:
    """Without a key, so that a write that was made twice shows."""
    await script(dsn, "CREATE TABLE things (id text)")
    return dsn


async def test_calls_after_all_backends_were_ended_work_at_once(things: str) -> None:
    async with opened(things) as it:
        await asyncio.gather(*(it.database.read(run("SELECT pg_sleep(0.01)")) for _ in range(5)))
        await end_backends(things)
        assert await it.database.read(run("SELECT 1")) == [(1,)]
        await end_backends(things)
        await it.database.write(run(put("a")), single=True)
        await end_backends(things)
        async with it.database.transaction() as tx:
            await tx.write(run(put("b")), single=True)
    assert await ids(things) == ["a", "b"]


async def test_the_news_of_a_lost_connection_may_come_only_with_the_next_statement(things: str) -> None:
    """The server is gone, and the client has not read that yet: a read and a transaction are begun anew."""
    async with Proxy(things).running() as proxy, opened(proxy.dsn, max_connections=1) as it:
        for call in (
            lambda: it.database.read(run("SELECT 1")),
            lambda: it.database.write(run(put("a"), put("b"))),
        ):
            await it.database.read(run("SELECT 1"))
            proxy.to_server = lambda data: proxy.heal() or proxy.cut() or False
            await call()
    assert await ids(things) == ["a", "b"]


async def test_a_connection_lost_before_its_transaction_begins_is_replaced(
    things: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(things) as it:
        know_schema, lost = it.home.engine.know_schema, 0

        async def lose(connection: Connection, limit: float | None) -> PostgresFacts:
            nonlocal lost
            facts = await know_schema(connection, limit)
            if lost < 1:
                lost += 1
                connection.terminate()
            return facts

        monkeypatch.setattr(it.home.engine, "know_schema", lose)
        async with it.database.transaction() as tx:
            await tx.write(run(put("a")), single=True)
    assert (lost, await ids(things)) == (1, ["a"])


async def test_a_write_on_a_connection_whose_end_was_announced_is_begun_anew(things: str) -> None:
    """The server's last words were read, the end of the stream was not: nothing is sent on such a connection."""
    async with Proxy(things).running() as proxy, opened(proxy.dsn, max_connections=1) as it:
        await serves_on(it)
        proxy.tells_of_the_end = False
        await end_backends(things)
        await asyncio.sleep(0.1)
        await it.database.write(run(put("a")), single=True)
    assert await ids(things) == ["a"]


async def test_a_write_under_way_has_an_unknown_outcome(things: str) -> None:
    async with opened(things) as it:
        writing = asyncio.create_task(it.database.write(run("SELECT pg_sleep(60)"), single=True))
        await until(lambda: is_asleep(things))
        await end_backends(things)
        with pytest.raises(OutcomeUnknownError, match="while a write was in flight") as caught:
            await writing
        assert not caught.value.retryable
        assert caught.value.__cause__ is not None
        await serves_on(it)


async def test_a_transaction_under_way_is_gone_for_certain(things: str) -> None:
    async with opened(things) as it:

        async def work(tx: TransactionDatabase) -> None:
            await tx.write(run(put("a")), single=True)
            await end_backends(things)
            await tx.write(run(put("b")), single=True)

        with pytest.raises(BackendUnavailableError, match="nothing was written"):
            await inside(it.database.transaction(), work)
        await serves_on(it)
    assert await ids(things) == []


async def test_a_lost_reply_to_an_autocommitted_write(things: str) -> None:
    async with Proxy(things).running() as proxy, opened(proxy.dsn, max_connections=1) as it:
        await it.database.write(run(put("a")), single=True)
        lose_the_reply(proxy)
        with pytest.raises(OutcomeUnknownError):
            await it.database.write(run(put("a")), single=True)
        await serves_on(it)
    assert await ids(things) == ["a", "a"]


@pytest.mark.parametrize("in_block", [True, False])
async def test_a_lost_reply_to_commit(things: str, in_block: bool) -> None:
    async with Proxy(things).running() as proxy, opened(proxy.dsn, max_connections=1) as it:
        await serves_on(it)
        lose_the_reply(proxy, to=COMMIT)
        work = run(put("a"), put("b"))
        call = inside(it.database.transaction(), lambda tx: tx.write(work)) if in_block else it.database.write(work)
        with pytest.raises(OutcomeUnknownError):
            await call
        await serves_on(it)
    assert await ids(things) == ["a", "b"]


async def test_a_commit_that_never_reached_the_server(things: str) -> None:
    async with Proxy(things).running() as proxy, opened(proxy.dsn, max_connections=1) as it:
        await serves_on(it)

        def cut_before_commit(data: bytes) -> bool:
            if any(commit in data for commit in COMMIT):
                proxy.cut()
                return False
            return True

        proxy.to_server = cut_before_commit
        with pytest.raises(OutcomeUnknownError):
            await it.database.write(run(put("a"), put("b")))
        proxy.heal()
        await serves_on(it)
    assert await ids(things) == []


async def test_a_server_that_is_not_there_is_no_empty_answer(things: str) -> None:
    async with Proxy(things).running() as proxy:
        address = proxy.dsn
    async with opened(address) as it:
        for _ in range(2):
            with pytest.raises(BackendUnavailableError, match="not available") as caught:
                await it.database.read(run("SELECT 1"))
            assert isinstance(caught.value.__cause__, OSError)


async def test_a_connection_that_leads_nowhere_is_cut(things: str) -> None:
    """Half-open: nothing arrives any more, and nobody says so."""
    limits = {"statement_timeout": timedelta(milliseconds=50)}
    async with Proxy(things).running() as proxy, opened(proxy.dsn, max_connections=1, **limits) as it:
        await serves_on(it)
        it.home.pool.limit = 0.1  # type: ignore[misc]  # a test may turn its knobs
        proxy.swallow()
        with pytest.raises(OutcomeUnknownError):
            await it.database.write(run(put("a")), single=True)
        proxy.heal()
        await serves_on(it)


async def test_a_statement_that_takes_too_long_wrote_nothing(things: str) -> None:
    async with opened(things, statement_timeout=timedelta(milliseconds=50)) as it:
        with pytest.raises(BackendBusyError, match="nothing was written") as caught:
            await it.database.write(run("SELECT pg_sleep(60)"), single=True)
        assert isinstance(caught.value.__cause__, asyncpg.QueryCanceledError)
        await serves_on(it)


async def test_a_lock_that_does_not_come_free_in_time(things: str) -> None:
    options = {"server_settings": {"lock_timeout": "50ms"}}
    async with opened(things, connect=options) as it, it.database.transaction() as tx:
        await tx.write(run("LOCK TABLE things"), single=True)
        with pytest.raises(BackendBusyError):
            await it.database.write(run(put("a")), single=True)


async def test_a_transaction_left_idle_is_ended_by_the_server(things: str) -> None:
    async with opened(things, idle_in_transaction_timeout=timedelta(milliseconds=50)) as it:

        async def idle(tx: TransactionDatabase) -> None:
            await tx.write(run(put("a")), single=True)
            await until(lambda: nobody(things))
            await tx.write(run(put("b")), single=True)

        with pytest.raises(BackendUnavailableError, match="idle_in_transaction_timeout"):
            await inside(it.database.transaction(), idle)
        await serves_on(it)
    assert await ids(things) == []


async def test_a_read_only_server_is_unavailable_until_it_takes_writes(things: str) -> None:
    name = things.rpartition("/")[2].partition("?")[0]
    async with opened(things) as it:
        await it.database.write(run(put("a")), single=True)
        await script(things, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await end_backends(things)
        with pytest.raises(BackendUnavailableError, match="takes no writes"):
            await it.database.write(run(put("b")), single=True)
        with pytest.raises(BackendUnavailableError, match="takes no writes"):
            await inside(it.database.transaction(), lambda tx: tx.write(run(put("b")), single=True))
        await script(things, f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        # No connection of before is used again: what it leads to may never take writes.
        await it.database.write(run(put("c")), single=True)
    assert await ids(things) == ["a", "c"]


async def test_a_wrong_password_is_no_outage(dsn: str) -> None:
    user, _, rest = dsn.rpartition("@")
    wrong = f"{user.rpartition(':')[0]}:{'not-' + 'it'}@{rest}"
    async with opened(wrong) as it:
        with pytest.raises(ConfigurationError, match="refused the login") as caught:
            await it.database.read(run("SELECT 1"))
        assert "not-it" not in repr(caught.value) + repr(caught.value.__cause__) + repr(vars(it.home))


async def nobody(dsn: str) -> bool:
    return await backends(dsn) == []


def lose_the_reply(proxy: Proxy, to: tuple[bytes, ...] = (b"",)) -> None:
    """Let the next statement (with these bytes in it) through, and cut when its answer comes."""

    def watch(data: bytes) -> bool:
        if any(part in data for part in to):
            proxy.to_client = cut
        return True

    def cut(data: bytes) -> bool:
        proxy.heal()
        proxy.cut()
        return False

    proxy.to_server = watch


async def serves_on(it: Opened) -> None:
    assert await it.database.read(run("SELECT 1")) == [(1,)]
