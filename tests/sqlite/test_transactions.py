"""Explicit transactions: what is inside, who waits outside, and how they end."""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.sqlite.support import Lock, ids, opened, put, put_and_fail, run, stored
from workflow_adapters import BackendBusyError, BackendUnavailableError, NotFoundError, UsageError
from workflow_adapters.errors import TransactionConflictError
from workflow_adapters.sqlite import execution
from workflow_adapters.sqlite.pool import PooledDatabase
from workflow_adapters.sqlite.transactions import TransactionDatabase
from workflow_adapters.transaction_scope import leave_transactions

pytestmark = pytest.mark.asyncio


class BlockError(Exception):
    """The block is to fail."""


async def test_it_commits_as_a_whole_and_readers_see_the_last_commit(database: PooledDatabase) -> None:
    async with database.transaction() as tx:
        await tx.write(run(put("a")), single=True)
        await tx.write(run(put("b"), put("c")))
        assert await tx.read(ids) == ["a", "b", "c"]
        assert await database.read(ids) == []
    assert await database.read(ids) == ["a", "b", "c"]


async def test_it_rolls_back_and_the_failure_propagates_unchanged(database: PooledDatabase) -> None:
    failure = BlockError()

    async def block() -> None:
        async with database.transaction() as tx:
            await tx.write(run(put("a")), single=True)
            raise failure

    with pytest.raises(BlockError) as raised:
        await block()
    assert raised.value is failure
    assert await database.read(ids) == []


async def test_an_operation_that_fails_half_way_leaves_the_transaction_usable(database: PooledDatabase) -> None:
    async with database.transaction() as tx:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(NotFoundError):
            await tx.write(put_and_fail("b"))
        await tx.write(run(put("c")), single=True)
    assert await database.read(ids) == ["a", "c"]


async def test_a_caught_inner_failure_undoes_only_the_inner_work(database: PooledDatabase) -> None:
    async def failing(tx: TransactionDatabase, id: str) -> None:
        async with tx.transaction() as inner:
            await inner.write(run(put(id), put(f"{id}+")))
            async with inner.transaction() as innermost:
                await innermost.write(run(put(f"{id}++")), single=True)
            raise BlockError

    async with database.transaction() as tx:
        await tx.write(run(put("a")), single=True)
        async with tx.transaction() as inner:
            await inner.write(run(put("b")), single=True)
            with pytest.raises(BlockError):
                await failing(inner, "c")
        with pytest.raises(BlockError):
            await failing(tx, "d")
        await tx.write(run(put("g")), single=True)
    assert await database.read(ids) == ["a", "b", "g"]


async def test_an_outer_write_from_inside_is_refused_at_once(database: PooledDatabase) -> None:
    async with database.transaction() as tx:
        await tx.write(run(put("a")), single=True)
        with pytest.raises(UsageError):
            await database.write(run(put("b")), single=True)
        with pytest.raises(UsageError):
            await asyncio.create_task(database.write(run(put("c")), single=True))
        with pytest.raises(UsageError):
            async with database.transaction():
                pass
    assert await database.read(ids) == ["a"]


async def test_an_outer_write_of_another_task_waits_its_turn(database: PooledDatabase) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def holder() -> None:
        async with database.transaction() as tx:
            await tx.write(run(put("a")), single=True)
            inside.set()
            await leave.wait()
            await tx.write(run(put("b")), single=True)

    holding = asyncio.create_task(holder())
    await inside.wait()
    waiting = [asyncio.create_task(database.write(run(put(name)), single=True)) for name in "cd"]
    waiting.append(asyncio.create_task(in_transaction(database, "e")))
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    leave.set()
    await asyncio.gather(holding, *waiting)
    assert await database.read(ids) == ["a", "b", "c", "d", "e"]


async def in_transaction(database: PooledDatabase, id: str) -> None:
    async with database.transaction() as tx:
        await tx.write(run(put(id)), single=True)


async def test_a_turn_that_does_not_come_is_a_busy_error(path: Path) -> None:
    async with opened(path, busy_timeout=0.05) as database, database.transaction() as tx:

        async def outside(id: str) -> Sequence[object]:
            leave_transactions()
            return await asyncio.gather(
                database.write(run(put(id)), single=True), in_transaction(database, id), return_exceptions=True
            )

        outcomes = await asyncio.create_task(outside("late"))
        assert [type(outcome) for outcome in outcomes] == [BackendBusyError, BackendBusyError]
        await tx.write(run(put("a")), single=True)
    assert stored(path) == ["a"]


async def test_twenty_at_once_all_succeed(database: PooledDatabase) -> None:
    await asyncio.gather(*(in_transaction(database, f"{n:02}") for n in range(20)))
    assert len(await database.read(ids)) == 20


async def test_concurrent_calls_on_one_tx_are_serialised(database: PooledDatabase) -> None:
    async with database.transaction() as tx:
        await asyncio.gather(*(tx.write(run(put(f"{n:02}"), put(f"{n:02}+"))) for n in range(20)))
    assert len(await database.read(ids)) == 40


async def test_a_tx_after_its_end_is_refused(database: PooledDatabase) -> None:
    async with database.transaction() as tx:
        async with tx.transaction() as inner:
            pass
        with pytest.raises(UsageError):
            await inner.write(run(put("a")), single=True)
    for ended in (tx, inner):
        with pytest.raises(UsageError):
            await ended.write(run(put("a")), single=True)
        with pytest.raises(UsageError):
            async with ended.transaction():
                pass
    assert await database.read(ids) == []


async def test_a_stray_call_never_runs_in_the_next_transaction(database: PooledDatabase) -> None:
    """The scope keeps strays out on the loop; the thread keeps out whatever slips through it."""
    from workflow_adapters.sqlite import transactions
    from workflow_adapters.sqlite.connection import start

    async with database.transaction() as tx:
        ended = tx._scope
    async with database.transaction() as tx:
        with pytest.raises(UsageError):
            await start(tx.connection, lambda opened: transactions._perform(opened, ended, run(put("a")), single=True))
    assert await database.read(ids) == []


async def test_what_sqlite_undid_is_not_committed(path: Path) -> None:
    async with opened(path) as database:
        await database.write(run("PRAGMA max_page_count = 20"), single=True)

        async def block() -> None:
            async with database.transaction() as tx:
                await tx.write(run(put("a")), single=True)
                with pytest.raises(BackendUnavailableError):
                    await tx.write(run(put("large", "x" * 200_000)), single=True)
                with pytest.raises(TransactionConflictError):
                    await tx.write(run(put("b")), single=True)

        with pytest.raises(TransactionConflictError) as ended:
            await block()
        assert isinstance(ended.value.__cause__, BackendUnavailableError)
        await database.write(run(put("after")), single=True)
    assert stored(path) == ["after"]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_a_caller_who_ends_the_transaction_is_told(database: PooledDatabase, end: str) -> None:
    async def block() -> None:
        async with database.transaction() as tx:
            await tx.connection.execute(end)
            with pytest.raises(UsageError):
                await tx.write(run(put("a")), single=True)

    with pytest.raises(UsageError):
        await block()
    await database.write(run(put("after")), single=True)
    assert await database.read(ids) == ["after"]


async def test_a_caller_who_closes_the_connection_harms_nobody_else(database: PooledDatabase) -> None:
    async def block() -> None:
        async with database.transaction() as tx:
            await tx.write(run(put("a")), single=True)
            await tx.connection.close()
            raise BlockError

    with pytest.raises(BlockError):
        await block()
    await database.write(run(put("after")), single=True)
    assert await database.read(ids) == ["after"]


async def test_a_caller_who_closes_it_later_harms_one_call(database: PooledDatabase) -> None:
    async with database.transaction() as tx:
        kept = tx.connection
    await kept.close()
    with pytest.raises(BackendUnavailableError):
        await database.write(run(put("lost")), single=True)
    await database.write(run(put("after")), single=True)
    assert await database.read(ids) == ["after"]


async def test_a_query_that_the_caller_left_open_ends_with_the_block(path: Path) -> None:
    """It would hold on to a snapshot on which nobody may write any more once somebody else has written."""
    async with opened(path) as database, opened(path) as other:
        await database.write(run(*(put(f"{n:03}") for n in range(300))))
        async with database.transaction() as tx:
            executed = await tx.connection.execute("SELECT id FROM things")
            cursor = await tx.connection.cursor()
            await cursor.execute("SELECT id FROM things")
            assert await executed.fetchone() == await cursor.fetchone() == ("000",)
        await other.write(run(put("other")), single=True)
        await database.write(run(put("single")), single=True)
        await in_transaction(database, "tx")
        assert len(await database.read(ids)) == 303
        with pytest.raises(sqlite3.ProgrammingError):
            await executed.fetchone()


async def test_the_callers_settings_of_the_connection_end_with_the_block(database: PooledDatabase) -> None:
    async with database.transaction() as tx:
        tx.connection.row_factory = sqlite3.Row
        tx.connection.text_factory = bytes
        await tx.write(run(put("a")), single=True)
        assert await tx.read(ids) == ["a"]
        [row] = await tx.connection.execute_fetchall("SELECT id FROM things")
        assert row["id"] == b"a"
    async with database.transaction() as tx:
        assert list(await tx.connection.execute_fetchall("SELECT id FROM things")) == [("a",)]


async def test_begin_waits_for_the_lock_without_blocking_the_loop(
    database: PooledDatabase, lock: Lock, pausing: threading.Event
) -> None:
    lock.take()
    waiting = asyncio.create_task(in_transaction(database, "a"))
    await asyncio.to_thread(pausing.wait)
    assert await database.read(ids) == []
    lock.release()
    await waiting
    assert await database.read(ids) == ["a"]


async def test_a_cancelled_wait_for_the_lock_ends_at_once(path: Path, lock: Lock, pausing: threading.Event) -> None:
    # With a lock that stays, and an hour to wait for it.
    async with opened(path, busy_timeout=3600) as database:
        lock.take()
        waiting = asyncio.create_task(in_transaction(database, "a"))
        await asyncio.to_thread(pausing.wait)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        lock.release()
        await in_transaction(database, "b")
        assert await database.read(ids) == ["b"]


async def test_a_turn_that_comes_together_with_a_cancel_is_passed_on(database: PooledDatabase) -> None:
    async def hold(inside: asyncio.Event, release: asyncio.Event) -> None:
        async with database.transaction():
            inside.set()
            await release.wait()
        # The turn has been given and its taker has not run yet.
        waiting.cancel()

    inside, release = asyncio.Event(), asyncio.Event()
    holding = asyncio.create_task(hold(inside, release))
    await inside.wait()
    waiting = asyncio.create_task(in_transaction(database, "a"))
    await asyncio.sleep(0)
    release.set()
    await asyncio.wait([holding, waiting])
    assert waiting.cancelled()
    await in_transaction(database, "b")
    assert await database.read(ids) == ["b"]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancelled_commit_is_waited_for(
    database: PooledDatabase, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    reached, gate = threading.Event(), threading.Event()
    fetch = execution._fetch

    def slow_commit(connection: sqlite3.Connection, sql: str, args: Sequence[object] = ()) -> list[object]:
        if sql == "COMMIT":
            reached.set()
            gate.wait(10)
        return fetch(connection, sql, args)

    before = database._writer._connection
    with monkeypatch.context() as slow:
        slow.setattr(execution, "_fetch", slow_commit)
        committing = asyncio.create_task(in_transaction(database, "a"))
        await asyncio.to_thread(reached.wait)
        for _ in range(times):
            committing.cancel()
            await asyncio.sleep(0)
        assert not committing.done()
        gate.set()
        await asyncio.wait([committing])
    assert committing.cancelled()
    assert await database.read(ids) == ["a"]
    await in_transaction(database, "b")
    assert database._writer._connection is before


async def test_a_lock_that_is_not_released_is_a_busy_error(path: Path, lock: Lock) -> None:
    async with opened(path, busy_timeout=0.05) as database:
        lock.take()
        with pytest.raises(BackendBusyError) as refused:
            await in_transaction(database, "a")
        assert isinstance(refused.value.__cause__, sqlite3.OperationalError)
        for single in (True, False):
            with pytest.raises(BackendBusyError):
                await database.write(run(put("b")), single=single)
        outcomes = await asyncio.gather(
            *(database.write(run(put(str(n))), single=True) for n in range(5)), return_exceptions=True
        )
        assert {type(outcome) for outcome in outcomes} == {BackendBusyError}
        assert await database.read(ids) == []
        lock.release()
        await in_transaction(database, "c")
        assert await database.read(ids) == ["c"]
