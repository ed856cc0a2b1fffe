"""Operations on the pool and in transactions: what is atomic, what nests, what is refused."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.postgres.support import (
    Opened,
    a_run,
    backends,
    ids,
    inside,
    is_asleep,
    opened,
    put,
    run,
    run_and_fail,
    script,
    until,
)
from workflow_adapters import (
    AlreadyExistsError,
    BackendBusyError,
    BackendError,
    BackendUnavailableError,
    NotFoundError,
    OutcomeUnknownError,
    Status,
    TransactionConflictError,
    UpdateRunInput,
    UsageError,
)
from workflow_adapters.postgres.database import TransactionDatabase
from workflow_adapters.postgres.pool import ConnectionPool
from workflow_adapters.sql.persistence import SqlWorkflowPersistence

pytestmark = pytest.mark.asyncio


async def test_a_single_operation_runs_without_begin_and_commit(dsn: str) -> None:
    async with opened(dsn) as it:
        first, second = [
            (await it.database.write(run("SELECT pg_current_xact_id()::text"), single=True))[0][0] for _ in range(2)
        ]
        [[level]] = await it.database.write(run("SHOW transaction_isolation"), single=True)
    assert first != second
    assert level == "read committed"


async def test_an_operation_of_several_statements_is_all_or_nothing(things: str) -> None:
    async with opened(things) as it:
        await it.database.write(run(put("a"), put("b")))
        with pytest.raises(NotFoundError):
            await it.database.write(run_and_fail(put("c"), put("d")))
        with pytest.raises(TransactionConflictError) as caught:
            await it.database.write(run(put("e"), put("a")))
    assert isinstance(caught.value.__cause__, asyncpg.UniqueViolationError)
    assert await ids(things) == ["a", "b"]


async def test_a_transaction_commits_what_all_its_calls_did(dsn: str) -> None:
    async with opened(dsn) as it:
        async with it.persistence.transaction() as tx:
            first = await tx.create_run(a_run())
            second = await tx.create_run(a_run())
            assert await it.persistence.get_run(first.id) is None
        assert {first.id, second.id} == {run.id for run in await it.persistence.get_runs_by_status(Status.PENDING)}


async def test_what_a_block_raises_comes_out_unchanged_and_undoes_all(dsn: str) -> None:
    failure = KeyError("mine")

    async def fail(tx: SqlWorkflowPersistence) -> None:
        await tx.create_run(a_run())
        raise failure

    async with opened(dsn) as it:
        with pytest.raises(KeyError) as caught:
            await inside(it.persistence.transaction(), fail)
        assert caught.value is failure
        assert await it.persistence.get_runs_by_status(Status.PENDING) == []


async def test_with_transaction_gives_back_the_value(dsn: str) -> None:
    async with opened(dsn) as it:

        async def work(tx: object) -> int:
            return 7

        assert await it.persistence.with_transaction(work) == 7


async def test_transactions_begin_read_committed_whatever_the_default_is(dsn: str) -> None:
    name = dsn.rpartition("/")[2].partition("?")[0]
    await script(dsn, f'ALTER DATABASE "{name}" SET default_transaction_isolation = serializable')
    pool = await asyncpg.create_pool(dsn, min_size=0, max_size=2)
    async with pool, opened(pool) as it:
        async with it.database.transaction() as tx:
            assert await tx.read(run("SHOW transaction_isolation")) == [("read committed",)]
        assert await it.database.write(run("SELECT 1", "SHOW transaction_isolation")) == [("read committed",)]
        # A single statement has the level of the pool's owner.
        assert await it.database.read(run("SHOW transaction_isolation")) == [("serializable",)]


async def test_an_inner_failure_undoes_only_the_inner_work(things: str) -> None:
    async def fail(inner: TransactionDatabase) -> None:
        await inner.write(run(put("b")), single=True)
        async with inner.transaction() as innermost:
            await innermost.write(run(put("c")), single=True)
        raise KeyError

    async with opened(things) as it, it.database.transaction() as tx:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(KeyError):
            await inside(tx.transaction(), fail)
        async with tx.transaction() as inner:
            await inner.write(run(put("d")), single=True)
    assert await ids(things) == ["a", "d"]


async def test_a_database_error_in_an_inner_block_leaves_the_outer_usable(things: str) -> None:
    async with opened(things) as it, it.database.transaction() as tx:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(TransactionConflictError):
            await inside(tx.transaction(), lambda inner: inner.write(run(put("a")), single=True))
        # Not single: a savepoint of its own.
        with pytest.raises(TransactionConflictError):
            await tx.write(run(put("b"), put("b")))
        await tx.write(run(put("c")), single=True)
    assert await ids(things) == ["a", "c"]


async def test_an_error_of_ours_leaves_the_transaction_usable(dsn: str) -> None:
    async with opened(dsn) as it:
        async with it.persistence.transaction() as tx:
            run = await tx.create_run(a_run())
            with pytest.raises(AlreadyExistsError):
                await tx.create_run(a_run(run.id))
            with pytest.raises(NotFoundError):
                await tx.update_run("nobody", UpdateRunInput(status=Status.RUNNING))
            await tx.update_run(run.id, UpdateRunInput(status=Status.RUNNING))
        assert await it.persistence.get_run_status(run.id) is Status.RUNNING


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_transaction_that_was_ended_by_its_connection_is_told(things: str, ending: str, goes_on: bool) -> None:
    async def end(tx: TransactionDatabase) -> None:
        await tx.write(run(put("a")), single=True)
        await tx.session.connection.execute(ending)
        if goes_on:
            await tx.write(run(put("b")), single=True)

    async with opened(things, max_connections=1) as it:
        with pytest.raises(UsageError, match="ended by a COMMIT or ROLLBACK"):
            await inside(it.database.transaction(), end)
        await it.database.write(run(put("c")))
    assert await ids(things) == (["a", "c"] if ending == "COMMIT" else ["c"])


async def test_a_swallowed_database_error_does_not_pass_for_a_commit(things: str) -> None:
    async def swallow(tx: TransactionDatabase) -> None:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(BackendError):
            await tx.write(run("SELECT 1 / 0"), single=True)

    async with opened(things) as it:
        with pytest.raises(TransactionConflictError, match="rolled back") as caught:
            await inside(it.database.transaction(), swallow)
        assert isinstance(caught.value.__cause__, BackendError)
        assert await ids(things) == []
        await serves_on(it)


async def test_nor_does_an_error_of_the_callers_own_statement(things: str) -> None:
    async def swallow(tx: TransactionDatabase) -> None:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(asyncpg.DivisionByZeroError):
            await tx.session.connection.fetch("SELECT 1 / 0")

    async with opened(things) as it:
        with pytest.raises(TransactionConflictError, match="rolled back"):
            await inside(it.database.transaction(), swallow)
        assert await ids(things) == []
        await serves_on(it)


async def test_asyncpgs_own_savepoints_work_on_the_connection(things: str) -> None:
    async with opened(things) as it, it.database.transaction() as tx:
        connection = tx.session.connection
        async with connection.transaction(isolation="read_committed"):
            await connection.execute(put("a"))
        await tx.write(run(put("b")), single=True)
    assert await ids(things) == ["a", "b"]


@pytest.mark.parametrize("fails", [True, False])
async def test_what_a_caller_leaves_in_the_session_is_not_the_next_ones(dsn: str, fails: bool) -> None:
    async def leave_things(tx: TransactionDatabase) -> None:
        await tx.session.connection.execute("SET application_name = 'workflow_adapters mine'; LISTEN mine")
        await tx.session.connection.fetch("SELECT pg_advisory_lock(7)")
        if fails:
            raise KeyError

    async with opened(dsn, max_connections=1) as it:
        with pytest.raises(KeyError) if fails else nullcontext():
            await inside(it.database.transaction(), leave_things)
        left = run(
            """
            SELECT current_setting('application_name'), (SELECT count(*) FROM pg_listening_channels()),
                   (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
            """
        )
        assert await it.database.read(left) == [("workflow_adapters", 0, 0)]


async def test_a_codec_or_callback_of_a_caller_is_not_the_next_ones(things: str) -> None:
    heard: list[object] = []

    async def upper_case(connection: Any) -> None:
        await connection.set_type_codec("text", schema="pg_catalog", encoder=str.upper, decoder=str.upper)

    async def listen(connection: Any) -> None:
        await connection.add_listener("mine", lambda *args: heard.append(args))

    async def watch(connection: Any) -> None:
        connection.add_query_logger(heard.append)

    async with opened(things, max_connections=1) as it:
        for alter in (upper_case, listen, watch):
            async with it.database.transaction() as tx:
                await alter(tx.session.connection)
            heard.clear()
            await it.database.write(run(put("a")), single=True)
            assert await it.database.read(run("SELECT id FROM things")) == [("a",)]
            await it.database.write(run("DELETE FROM things"), single=True)
    assert heard == []


async def test_concurrent_calls_on_one_transaction_take_turns(dsn: str) -> None:
    async with opened(dsn) as it:
        async with it.persistence.transaction() as tx:
            runs = await asyncio.gather(*(tx.create_run(a_run()) for _ in range(20)))
        assert len({run.id for run in runs}) == 20
        assert len(await it.persistence.get_runs_by_status(Status.PENDING)) == 20


async def test_a_gather_that_fails_leaves_nothing_and_a_clean_connection(things: str) -> None:
    async def gather(tx: TransactionDatabase) -> None:
        await asyncio.gather(
            tx.write(run(put("a")), single=True),
            tx.write(run("SELECT 1 / 0"), single=True),
            tx.write(run("SELECT pg_sleep(0.2)", put("b")), single=True),
        )

    async with opened(things, max_connections=1) as it:
        with pytest.raises(BackendError):
            await inside(it.database.transaction(), gather)
        assert await ids(things) == []
        await serves_on(it, times=100)


async def test_a_block_that_fails_beside_a_call_waits_for_the_call(things: str) -> None:
    async def fail() -> None:
        await until(lambda: is_asleep(things))
        raise KeyError

    async def gather(tx: TransactionDatabase) -> None:
        await asyncio.gather(tx.write(run("SELECT pg_sleep(0.2)", put("a")), single=True), fail())

    async with opened(things, max_connections=1) as it:
        with pytest.raises(KeyError):
            await inside(it.database.transaction(), gather)
        [before] = await backends(things)
        await serves_on(it)
        assert await backends(things) == [before], "the connection did not survive it"
    assert await ids(things) == []


async def test_an_inner_block_ends_after_the_calls_that_were_begun_in_it(things: str) -> None:
    statements: list[str] = []
    async with opened(things) as it, it.database.transaction() as tx:
        driver = tx.session.connection
        assert isinstance(driver, asyncpg.Connection)
        driver.add_query_logger(lambda record: statements.append(record.query))
        async with tx.transaction() as inner:
            calls = [asyncio.create_task(inner.write(run(put(id)), single=True)) for id in ("a", "b")]
            await asyncio.sleep(0)
        await asyncio.gather(*calls)
    words = [sql.split()[0] for sql in statements]
    assert words[: words.index("RELEASE")].count("INSERT") == 2
    assert await ids(things) == ["a", "b"]


async def test_the_watchdog_of_the_pool_spares_transactions(things: str) -> None:
    async with opened(things) as it, it.database.transaction() as tx:
        pool = it.home.pool
        assert isinstance(pool, ConnectionPool)
        pool.limit = -1.0
        pool._cut_dead_calls()
        pool.limit = 30.0
        await tx.write(run(put("a")), single=True)
    assert await ids(things) == ["a"]


class Gone:
    """A connection that is lost before or after its first answer."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    async def fetch(self, query: str, *args: object, timeout: float | None = None) -> list[object]:
        if self._answers == 0:
            raise asyncpg.InterfaceError("connection is closed")
        self._answers -= 1
        return []

    def is_closed(self) -> bool:
        return self._answers == 0


@pytest.mark.parametrize(("answers", "expected"), [(0, BackendUnavailableError), (1, OutcomeUnknownError)])
async def test_nothing_was_written_only_if_nothing_was_sent(
    dsn: str, answers: int, expected: type[BackendError]
) -> None:
    connection: Any = Gone(answers)
    async with opened(dsn) as it:
        with pytest.raises(expected):
            await it.home.engine.run(connection, run("UPDATE", "SELECT")(), limit=None, in_doubt=True)


async def test_a_transaction_used_after_its_end_is_refused(dsn: str) -> None:
    async with opened(dsn) as it:
        async with it.persistence.transaction() as tx:
            pass
        with pytest.raises(UsageError, match="ended"):
            await tx.get_run("x")


async def test_a_call_on_the_outer_from_inside_the_inner_block_is_refused(dsn: str) -> None:
    async with opened(dsn) as it, it.persistence.transaction() as tx:
        async with tx.transaction():
            with pytest.raises(UsageError, match="inner block"):
                await tx.get_run("x")
        assert await tx.get_run("x") is None


async def test_a_call_on_the_outer_from_another_task_waits_for_the_inner_block(things: str) -> None:
    async with opened(things) as it, it.database.transaction() as tx:
        entered = asyncio.Event()

        async def outside() -> list[object]:
            await entered.wait()
            return await tx.read(run("SELECT id FROM things"))

        async def fail(inner: TransactionDatabase) -> None:
            entered.set()
            await inner.write(run(put("a")), single=True)
            raise KeyError

        waiting = asyncio.create_task(outside())
        with pytest.raises(KeyError):
            await inside(tx.transaction(), fail)
        assert await waiting == []


async def test_a_pool_that_is_exhausted_says_so_in_time(dsn: str) -> None:
    async with opened(dsn, max_connections=1, acquire_timeout=timedelta(milliseconds=50)) as it:
        async with it.persistence.transaction() as tx:
            with pytest.raises(BackendBusyError, match="all 1 are in use"):
                await it.persistence.get_run("x")
            assert await tx.get_run("x") is None
        await serves_on(it)


async def test_many_nested_calls_get_through_a_small_pool(dsn: str) -> None:
    async with opened(dsn, max_connections=4) as it:

        async def nested() -> None:
            async with it.persistence.transaction() as tx, tx.transaction() as inner:
                await inner.create_run(a_run())

        await asyncio.gather(*(nested() for _ in range(50)))
        assert len(await it.persistence.get_runs_by_status(Status.PENDING)) == 50


async def test_a_bundle_is_used_in_its_own_loop_and_while_it_is_open(dsn: str) -> None:
    async with opened(dsn) as it:
        with pytest.raises(UsageError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, it.persistence.get_run("x"))
        await serves_on(it)
    with pytest.raises(UsageError, match="closed"):
        await it.persistence.get_run("x")


async def serves_on(it: Opened, times: int = 1) -> None:
    for _ in range(times):
        assert await it.persistence.get_run("nobody") is None
