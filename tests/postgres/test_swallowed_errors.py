"""Errors that a caller swallows inside a transaction: what Postgres has undone by then never passes for stored."""

from __future__ import annotations

import asyncpg
import pytest

from tests.postgres.support import a_run, ids, inside, opened, put, query, run, script
from tests.worked_examples.examples import call
from workflow_adapters import (
    BackendError,
    ConfigurationError,
    CreateLogInput,
    LogLevel,
    NotFoundError,
    SchemaError,
    TransactionConflictError,
    UpdateRunInput,
    WorkflowAdapterError,
    WorkflowPersistence,
)
from workflow_adapters.ports.adapters import TransactionAdapters
from workflow_adapters.postgres.bundle import PostgresTransaction, open_postgres
from workflow_adapters.postgres.database import TransactionDatabase

pytestmark = pytest.mark.asyncio

# Statements that the server refuses, each of which costs the transaction, and what the end of the block raises.
REFUSED: dict[str, type[WorkflowAdapterError]] = {
    "SELECT * FROM nowhere": SchemaError,
    "SELECT nothing FROM workflow_runs": SchemaError,
    "SELECT 'UNHEARD OF'::\"Status\"": SchemaError,
    "DO $$ BEGIN RAISE 'no' USING ERRCODE = 'insufficient_privilege'; END $$": ConfigurationError,
    "SELECT 1 / 0": TransactionConflictError,
}
refused = pytest.mark.parametrize(("sql", "expected"), REFUSED.items())


async def put_and_swallow(tx: TransactionDatabase, id: str, sql: str) -> None:
    await tx.write(run(put(id)), single=True)
    # Whatever it is besides: no other error may cost the transaction.
    with pytest.raises(BackendError) as caught:
        await tx.write(run(sql), single=True)
    assert isinstance(caught.value.__cause__, asyncpg.PostgresError)


@refused
async def test_a_transaction_that_the_server_aborted_does_not_end_well(
    things: str, sql: str, expected: type[WorkflowAdapterError]
) -> None:
    async with opened(things) as it:
        with pytest.raises(expected) as caught:
            await inside(it.database.transaction(), lambda tx: put_and_swallow(tx, "a", sql))
        assert isinstance(caught.value.__cause__, BackendError)
        assert await ids(things) == []


@refused
async def test_of_an_inner_block_only_its_own_work_is_undone(
    things: str, sql: str, expected: type[WorkflowAdapterError]
) -> None:
    async with opened(things) as it:
        async with it.database.transaction() as tx:
            await tx.write(run(put("a")), single=True)
            with pytest.raises(expected) as caught:
                await inside(tx.transaction(), lambda inner: put_and_swallow(inner, "b", sql))
            assert isinstance(caught.value.__cause__, BackendError)
            await tx.write(run(put("c")), single=True)
        assert await ids(things) == ["a", "c"]


@refused
async def test_the_block_of_bind_does_not_end_well_either(
    things: str, sql: str, expected: type[WorkflowAdapterError]
) -> None:
    connection = await asyncpg.connect(things)

    async def swallow(tx: TransactionAdapters) -> None:
        assert isinstance(tx, PostgresTransaction)
        await put_and_swallow(tx._database, "a", sql)

    async def in_transaction() -> None:
        async with open_postgres(things) as adapters, connection.transaction():
            await inside(adapters.bind(connection), swallow)

    with pytest.raises(expected) as caught:
        await in_transaction()
    assert isinstance(caught.value.__cause__, BackendError)
    await connection.close()
    assert await ids(things) == []


async def log_and_swallow(tx: WorkflowPersistence) -> None:
    await tx.create_run(a_run("r"))
    with pytest.raises(SchemaError):
        await tx.create_log(CreateLogInput(workflow_run_id="r", level=LogLevel.INFO, message="?"))
    # What follows is refused as well, and does not hide why.
    with pytest.raises(TransactionConflictError):
        await tx.get_run("r")


async def test_a_table_that_went_missing_is_told_at_the_end_again(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        assert await adapters.persistence.get_run("r") is None
        await script(dsn, "DROP TABLE workflow_logs")
        with pytest.raises(SchemaError, match="workflow_logs"):
            await inside(adapters.transaction(), lambda tx: log_and_swallow(tx.persistence))
        with pytest.raises(SchemaError, match="workflow_logs"):
            await adapters.persistence.with_transaction(log_and_swallow)
        assert await adapters.persistence.get_run("r") is None


async def test_no_logged_call_is_lost_to_a_missing_table(dsn: str) -> None:
    async def log(tx: TransactionAdapters) -> None:
        tx.ai_call_logger.log_call(call())
        with pytest.raises(SchemaError, match="ai_calls"):
            await tx.ai_call_logger.get_stats("")

    async with open_postgres(dsn) as adapters:
        assert await adapters.persistence.get_run("r") is None
        await script(dsn, "ALTER TABLE ai_calls RENAME TO away")
        with pytest.raises(SchemaError, match="ai_calls"):
            await inside(adapters.transaction(), log)
        await script(dsn, "ALTER TABLE away RENAME TO ai_calls")
        assert (await adapters.ai_call_logger.get_stats("")).total_calls == 1


async def test_what_a_savepoint_undid_is_not_held_against_the_transaction(things: str) -> None:
    async with opened(things) as it:
        async with it.database.transaction() as tx:
            await tx.write(run(put("a")), single=True)
            with pytest.raises(SchemaError):
                await inside(tx.transaction(), lambda inner: inner.write(run("SELECT * FROM nowhere"), single=True))
            with pytest.raises(SchemaError):
                await tx.write(run(put("b"), "SELECT * FROM nowhere"))
            assert tx.session.failure is None
        assert await ids(things) == ["a"]


async def test_errors_that_cost_nothing_do_not_keep_a_block_from_ending_well(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)

    async def swallow(tx: TransactionAdapters) -> None:
        await tx.persistence.create_run(a_run())
        with pytest.raises(NotFoundError):
            await tx.persistence.update_run("nobody", UpdateRunInput(output=1))

    async with open_postgres(dsn) as adapters:
        await inside(adapters.transaction(), swallow)
        async with connection.transaction():
            await inside(adapters.bind(connection), swallow)
        await connection.close()
        assert await query(dsn, "SELECT count(*) FROM workflow_runs") == [(2,)]
