"""One table: what the server's codes mean, and nothing of asyncpg's comes out."""

from __future__ import annotations

import asyncio
import pickle
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.postgres.proxy import Proxy
from tests.postgres.support import a_run, inside, opened, query, run, script
from workflow_adapters import (
    BackendBusyError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    OutcomeUnknownError,
    SchemaError,
    TransactionConflictError,
    UsageError,
    WorkflowAdapterError,
)
from workflow_adapters.postgres.database import TransactionDatabase
from workflow_adapters.postgres.errors import InFlight, connecting_failed, meaning, translated, was_never_sent

CODES: dict[str, type[WorkflowAdapterError]] = {
    "08006": BackendUnavailableError,
    "08P01": BackendUnavailableError,
    "22003": BackendError,
    "22P02": SchemaError,
    "23503": BackendError,
    "23505": TransactionConflictError,
    "25006": BackendUnavailableError,
    "25P02": TransactionConflictError,
    "25P03": BackendUnavailableError,
    "26000": ConfigurationError,
    "28P01": ConfigurationError,
    "3D000": ConfigurationError,
    "3F000": SchemaError,
    "40001": TransactionConflictError,
    "40003": OutcomeUnknownError,
    "40P01": TransactionConflictError,
    "42501": ConfigurationError,
    "42P01": SchemaError,
    "42P10": SchemaError,
    "42703": SchemaError,
    "42704": SchemaError,
    "42883": SchemaError,
    "53100": BackendUnavailableError,
    "53300": BackendUnavailableError,
    "55P03": BackendBusyError,
    "57014": BackendBusyError,
    "57P01": BackendUnavailableError,
    "57P03": BackendUnavailableError,
    "58030": BackendError,
    "XX000": BackendError,
}
RETRYABLE = (BackendUnavailableError, BackendBusyError, TransactionConflictError)


def server_error(code: str) -> asyncpg.PostgresError:
    return asyncpg.PostgresError.new({"C": code, "M": "what it said", "D": "Key (id)=(secret) is there"})


@pytest.mark.parametrize(("code", "expected"), CODES.items())
def test_each_code(code: str, expected: type[WorkflowAdapterError]) -> None:
    found = meaning(server_error(code))
    assert type(found) is expected
    assert "what it said" in str(found)
    assert "secret" not in str(found)
    assert getattr(found, "retryable", False) is isinstance(found, RETRYABLE)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@pytest.mark.parametrize(
    ("in_flight", "expected"),
    [
        (InFlight(sent=False, in_doubt=True), BackendUnavailableError),
        (InFlight(sent=True, in_doubt=True), OutcomeUnknownError),
        (InFlight(sent=True, in_doubt=False), BackendUnavailableError),
    ],
)
def test_what_a_lost_connection_means(in_flight: InFlight, expected: type[WorkflowAdapterError]) -> None:
    for error in (asyncpg.ConnectionDoesNotExistError("gone"), ConnectionResetError("reset")):
        assert type(translated(error, closed=False, in_flight=in_flight)) is expected
    # Whatever is raised on a connection that is closed.
    assert type(translated(server_error("57P01"), closed=True, in_flight=in_flight)) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (server_error("57P05"), True),
        (server_error("25P03"), True),
        (server_error("57P01"), False),
        (asyncpg.InterfaceError("connection is closed"), True),
        (asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"), True),
        (asyncpg.InternalClientError("got result for unknown protocol state"), False),
        (asyncpg.ConnectionDoesNotExistError("closed in the middle"), False),
    ],
)
def test_what_certainly_was_not_done(error: Exception, expected: bool) -> None:
    assert was_never_sent(error) is expected


def test_the_servers_last_words_are_told() -> None:
    error = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
    error.__cause__ = server_error("57P01")
    assert "what it said" in str(translated(error, closed=True, in_flight=InFlight()))


def test_what_the_driver_itself_complains_of() -> None:
    busy = asyncpg.InterfaceError("another operation is in progress")
    assert isinstance(translated(busy, closed=False, in_flight=InFlight()), UsageError)
    wrong = asyncpg.DataError("invalid input for query argument")
    assert type(translated(wrong, closed=False, in_flight=InFlight())) is BackendError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError("no"), BackendUnavailableError),
        (TimeoutError(), BackendUnavailableError),
        (server_error("57P03"), BackendUnavailableError),
        (server_error("53300"), BackendUnavailableError),
        (server_error("28P01"), ConfigurationError),
        (server_error("3D000"), ConfigurationError),
        (server_error("42704"), ConfigurationError),
        (server_error("22023"), ConfigurationError),
        (server_error("XX000"), BackendUnavailableError),
        (asyncpg.TargetServerAttributeNotMatched("none"), BackendUnavailableError),
    ],
)
def test_what_a_failure_to_connect_means(error: Exception, expected: type[WorkflowAdapterError]) -> None:
    assert type(connecting_failed(error)) is expected


@pytest.mark.asyncio
async def test_a_plan_that_a_migration_made_stale(dsn: str) -> None:
    await script(dsn, "CREATE TABLE things (id text)")
    star = run("SELECT * FROM things")

    async def in_block(tx: TransactionDatabase) -> None:
        await tx.read(run("SELECT 1"))
        await script(dsn, "ALTER TABLE things ADD COLUMN c int")
        await tx.read(star)

    async with opened(dsn, max_connections=1) as it:
        assert await it.database.read(star) == []
        await script(dsn, "ALTER TABLE things ADD COLUMN a int")
        assert await it.database.read(star) == []
        await script(dsn, "ALTER TABLE things ADD COLUMN b int")
        # In a transaction of ours, which is begun anew.
        assert await it.database.write(star) == []
        with pytest.raises(TransactionConflictError):
            await inside(it.database.transaction(), in_block)
        assert await it.database.read(star) == []


@pytest.mark.asyncio
async def test_a_deadlock_ends_one_transaction(dsn: str) -> None:
    async with opened(dsn) as it:
        first, second = [(await it.persistence.create_run(a_run())).id for _ in range(2)]
        met = asyncio.Barrier(2)

        async def cross(one: str, other: str) -> str:
            async with it.database.transaction() as tx:
                await tx.write(run(f"UPDATE workflow_runs SET priority = 1 WHERE id = '{one}'"), single=True)
                await met.wait()
                await tx.write(run(f"UPDATE workflow_runs SET priority = 1 WHERE id = '{other}'"), single=True)
            return "done"

        outcomes = await asyncio.gather(cross(first, second), cross(second, first), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome != "done"] == [TransactionConflictError]


@pytest.mark.asyncio
async def test_a_role_without_privileges(dsn: str) -> None:
    await script(
        dsn, "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN PASSWORD 'poor'; GRANT SELECT ON wa_migrations TO poor"
    )
    user, _, rest = dsn.partition("@")
    assert user
    async with opened(f"postgresql://poor:poor@{rest}") as it:
        with pytest.raises(ConfigurationError, match="may not do this"):
            await it.persistence.get_run("x")
    await script(dsn, "DROP OWNED BY poor; DROP ROLE poor")


@pytest.mark.asyncio
async def test_a_database_that_does_not_exist(dsn: str) -> None:
    async with opened(f"{dsn}_not") as it:
        with pytest.raises(ConfigurationError, match="no such database"):
            await it.persistence.get_run("x")


@pytest.mark.asyncio
async def test_of_several_hosts_the_one_that_takes_writes(dsn: str) -> None:
    async with Proxy(dsn).running() as dead:
        first = dead.dsn.rpartition("@")[2].partition("/")[0]
    second = dsn.rpartition("@")[2].partition("/")[0]
    both = dsn.replace(second, f"{first},{second}")
    async with opened(both, connect_timeout=timedelta(seconds=5)) as it:
        assert await it.database.read(run("SELECT 1")) == [(1,)]
        # The second is read-only now: none is left.
        name = dsn.rpartition("/")[2]
        await script(dsn, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await it.home.pool.invalidate()
        with pytest.raises(BackendUnavailableError):
            await it.database.read(run("SELECT 1"))
    async with opened(f"{both}?target_session_attrs=any") as it:
        assert await it.database.read(run("SELECT 1")) == [(1,)]


@pytest.mark.asyncio
async def test_the_settings_of_a_connection_of_ours(dsn: str) -> None:
    names = ("application_name", "statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout")
    shown = run("SELECT " + ", ".join(f"current_setting('{name}')" for name in names))
    async with opened(dsn) as it:
        assert await it.database.read(shown) == [("workflow_adapters", "30s", "1min", "0")]
    chosen: dict[str, Any] = {
        "application_name": "workflow_adapters shop",
        "statement_timeout": timedelta(seconds=7),
        "connect": {"server_settings": {"lock_timeout": "3s"}},
    }
    async with opened(f"{dsn}?idle_in_transaction_session_timeout=9s", **chosen) as it:
        assert await it.database.read(shown) == [("workflow_adapters shop", "7s", "9s", "3s")]
    assert await query(dsn, "SELECT 1") == [(1,)]
