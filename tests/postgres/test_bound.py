"""Inside a caller's own transaction: asyncpg's connections, pooled or not, and SQLAlchemy's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from tests.postgres.support import a_run, inside, query, script
from workflow_adapters import (
    BackendUnavailableError,
    ConfigurationError,
    CreateAICallInput,
    CreateOutboxEventInput,
    EnqueueJobInput,
    JobAckOutcome,
    NotFoundError,
    Status,
    TransactionConflictError,
    UpdateRunInput,
    UsageError,
)
from workflow_adapters.ports.adapters import TransactionAdapters
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres
from workflow_adapters.records.job_queue import DequeueResult

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def shop(dsn: str) -> str:
    await script(dsn, "CREATE TABLE orders (id text PRIMARY KEY, document jsonb)")
    return dsn


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


def a_job(run_id: str, stage: str = "s") -> EnqueueJobInput:
    return EnqueueJobInput(workflow_run_id=run_id, workflow_id="order", stage_id=stage, payload={"a": [1, None]})


def an_event(run_id: str) -> CreateOutboxEventInput:
    return CreateOutboxEventInput(
        workflow_run_id=run_id, event_type="made", payload={"n": 1.5}, causation_id="c", occurred_at=datetime.now(UTC)
    )


def a_call() -> CreateAICallInput:
    return CreateAICallInput(
        topic="shop",
        call_type="text",
        model_key="m",
        model_id="m-1",
        prompt="?",
        response="!",
        input_tokens=1,
        output_tokens=2,
        cost=0.25,
    )


async def everything(tx: TransactionAdapters, claimed: DequeueResult) -> str:
    run = await tx.persistence.create_run(a_run())
    await tx.job_queue.enqueue_parallel([a_job(run.id), a_job(run.id, "t")])
    await tx.persistence.append_outbox_events([an_event(run.id), an_event(run.id)])
    assert await tx.job_queue.complete(claimed.job_id, claimed.fence) is JobAckOutcome.ACKNOWLEDGED
    tx.ai_call_logger.log_call(a_call())
    assert (await tx.ai_call_logger.get_stats("shop")).total_calls == 1
    return run.id


async def claimed_job(adapters: PostgresAdapters) -> DequeueResult:
    await adapters.job_queue.enqueue_parallel([a_job("before")])
    job = await adapters.job_queue.dequeue()
    assert job is not None
    return job


async def counts(dsn: str) -> dict[str, int]:
    names = ("orders", "workflow_runs", "outbox_events")
    found = {name: (await query(dsn, f"SELECT count(*) FROM {name}"))[0][0] for name in names}
    [[jobs]] = await query(dsn, "SELECT count(*) FROM job_queue WHERE status = 'PENDING'")
    return {**found, "pending": jobs}


class Custom(dict[str, Any]):
    """What the caller's own codec makes of jsonb."""


@pytest.mark.parametrize("codec", ["none", "text", "binary"])
@pytest.mark.parametrize("commits", [True, False])
async def test_business_rows_and_ours_share_a_fate(shop: str, codec: str, commits: bool) -> None:
    async with open_postgres(shop) as adapters, connected(shop) as connection:
        if codec == "text":
            await connection.set_type_codec(
                "jsonb", schema="pg_catalog", encoder=json.dumps, decoder=lambda text: Custom(json.loads(text))
            )
        elif codec == "binary":
            await connection.set_type_codec(
                "jsonb",
                schema="pg_catalog",
                format="binary",
                encoder=lambda value: b"\x01" + json.dumps(value).encode(),
                decoder=lambda data: Custom(json.loads(data[1:])),
            )
        job = await claimed_job(adapters)
        transaction = connection.transaction()
        await transaction.start()
        document: Any = '{"a": 1}' if codec == "none" else {"a": 1}
        await connection.execute("INSERT INTO orders VALUES ('o', $1)", document)
        async with adapters.bind(connection) as tx:
            assert tx.connection is connection
            run_id = await everything(tx, job)
            found = await tx.persistence.get_run(run_id)
            assert found is not None
            assert found.input == {"n": 1}
        assert connection.is_in_transaction()
        stored = await connection.fetchval("SELECT document FROM orders")
        assert isinstance(stored, str if codec == "none" else Custom)
        await (transaction.commit() if commits else transaction.rollback())
        [after] = await adapters.job_queue.get_jobs_by_workflow_run("before")
        assert after.status is (Status.COMPLETED if commits else Status.RUNNING)
    whole = {"orders": 1, "workflow_runs": 1, "outbox_events": 2, "pending": 2}
    assert await counts(shop) == (whole if commits else dict.fromkeys(whole, 0))


async def test_a_pools_proxy_is_a_connection_too(shop: str) -> None:
    async with (
        asyncpg.create_pool(shop, min_size=0, max_size=1) as pool,
        open_postgres(shop) as adapters,
        pool.acquire() as connection,
        connection.transaction(),
        adapters.bind(connection) as tx,
    ):
        await tx.persistence.create_run(a_run())
    assert (await counts(shop))["workflow_runs"] == 1


async def test_without_an_open_transaction_it_is_refused(shop: str) -> None:
    async with open_postgres(shop) as adapters, connected(shop) as connection:
        with pytest.raises(UsageError, match="no transaction is open"):
            await inside(adapters.bind(connection), lambda tx: tx.persistence.get_run("x"))
        async with connection.transaction(), adapters.bind(connection) as tx:
            await connection.execute("COMMIT")
            with pytest.raises(UsageError, match="no transaction is open"):
                await tx.persistence.create_run(a_run())
            await connection.execute("BEGIN")
    assert (await counts(shop))["workflow_runs"] == 0


async def test_a_proxy_that_was_given_back_is_refused(shop: str) -> None:
    async with (
        asyncpg.create_pool(shop, min_size=0, max_size=1) as pool,
        open_postgres(shop) as adapters,
    ):
        connection = await pool.acquire()
        transaction = connection.transaction()
        await transaction.start()
        async with adapters.bind(connection) as tx:
            await transaction.rollback()
            await pool.release(connection)
            with pytest.raises(UsageError, match="released back to the pool"):
                await tx.persistence.get_run("x")


async def test_something_else_is_no_connection(shop: str) -> None:
    async with open_postgres(shop) as adapters:
        with pytest.raises(ConfigurationError, match="not str"):
            await inside(adapters.bind(shop), lambda tx: tx.persistence.get_run("x"))


async def test_an_error_of_ours_leaves_the_callers_transaction_usable(shop: str) -> None:
    async with (
        open_postgres(shop) as adapters,
        connected(shop) as connection,
        connection.transaction(),
        adapters.bind(connection) as tx,
    ):
        with pytest.raises(NotFoundError):
            await tx.persistence.update_run("nobody", UpdateRunInput(status=Status.RUNNING))
        await connection.execute("INSERT INTO orders VALUES ('o')")
    assert (await counts(shop))["orders"] == 1


async def test_savepoints_in_a_callers_transaction(shop: str) -> None:
    async def fail(tx: TransactionAdapters) -> None:
        await tx.persistence.create_run(a_run())
        raise KeyError

    async with (
        open_postgres(shop) as adapters,
        connected(shop) as connection,
        connection.transaction(),
        adapters.bind(connection) as tx,
    ):
        await tx.persistence.create_run(a_run())
        with pytest.raises(KeyError):
            await inside(tx.transaction(), fail)
        async with tx.transaction() as inner, connection.transaction():
            await inner.persistence.create_run(a_run())
    assert (await counts(shop))["workflow_runs"] == 2


async def test_the_callers_level_rules_and_a_conflict_is_the_callers(shop: str) -> None:
    async with open_postgres(shop) as adapters, connected(shop) as connection:
        run = await adapters.persistence.create_run(a_run())

        async def conflict(tx: TransactionAdapters) -> None:
            await tx.persistence.get_run(run.id)
            await adapters.persistence.update_run(run.id, UpdateRunInput(status=Status.RUNNING))
            await tx.persistence.update_run(run.id, UpdateRunInput(status=Status.FAILED))

        async def in_transaction() -> None:
            async with connection.transaction(isolation="repeatable_read"):
                await inside(adapters.bind(connection), conflict)

        with pytest.raises(TransactionConflictError):
            await in_transaction()
        assert await adapters.persistence.get_run_status(run.id) is Status.RUNNING


async def test_a_lost_connection_inside_is_told(shop: str) -> None:
    async with (
        asyncpg.create_pool(shop, min_size=0, max_size=1) as pool,
        open_postgres(shop) as adapters,
    ):
        connection = await pool.acquire()
        await connection.execute("BEGIN")
        async with adapters.bind(connection) as tx:
            await query(shop, "SELECT pg_terminate_backend($1, 5000)", connection.get_server_pid())
            with pytest.raises(BackendUnavailableError):
                await tx.persistence.get_run("x")
            await asyncio.sleep(0)
            with pytest.raises(BackendUnavailableError, match="transaction with it"):
                await tx.persistence.get_run("x")
        await pool.release(connection)


async def test_calls_logged_in_a_transaction_are_there_at_its_commit(shop: str) -> None:
    async with open_postgres(shop) as adapters:
        async with adapters.transaction() as tx:
            tx.ai_call_logger.log_call(a_call())
        assert await query(shop, "SELECT count(*) FROM ai_calls") == [(1,)]


async def test_calls_logged_in_a_block_that_fails_are_not_lost(shop: str) -> None:
    async def fail(tx: TransactionAdapters) -> None:
        tx.ai_call_logger.log_call(a_call())
        assert (await tx.ai_call_logger.get_stats("shop")).total_calls == 1
        raise KeyError

    async with open_postgres(shop) as adapters:
        with pytest.raises(KeyError):
            await inside(adapters.transaction(), fail)
        assert (await adapters.ai_call_logger.get_stats("shop")).total_calls == 1


async def test_sqlalchemys_session_and_connection(shop: str) -> None:
    engine = create_async_engine(shop.replace("postgresql://", "postgresql+asyncpg://"))
    async with open_postgres(shop) as adapters:
        job = await claimed_job(adapters)
        async with AsyncSession(engine) as session, session.begin():
            # Nothing has run yet: SQLAlchemy has begun nothing.
            async with adapters.bind_sqlalchemy(session) as tx:
                await everything(tx, job)
            await session.execute(text("INSERT INTO orders VALUES ('o', '{}')"))
        async with engine.connect() as connection:
            async with adapters.bind_sqlalchemy(connection) as tx:
                await tx.persistence.create_run(a_run())
            await connection.rollback()
        async with engine.begin() as connection:
            [document] = await connection.execute(text("SELECT document FROM orders"))
            assert document == ({},)
    await engine.dispose()
    assert await counts(shop) == {"orders": 1, "workflow_runs": 1, "outbox_events": 2, "pending": 2}


async def test_sqlalchemy_in_autocommit_has_no_transaction(shop: str) -> None:
    engine = create_async_engine(shop.replace("postgresql://", "postgresql+asyncpg://"), isolation_level="AUTOCOMMIT")
    async with open_postgres(shop) as adapters, engine.connect() as connection:
        with pytest.raises(UsageError, match="no transaction is open"):
            await inside(adapters.bind_sqlalchemy(connection), lambda tx: tx.persistence.get_run("x"))
        with pytest.raises(ConfigurationError, match="not str"):
            await inside(adapters.bind_sqlalchemy(shop), lambda tx: tx.persistence.get_run("x"))  # type: ignore[arg-type]  # what it refuses
    await engine.dispose()
