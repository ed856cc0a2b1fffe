"""Cancelling any call at any suspension, once and twice, by both kinds of cancel."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiosqlite
import anyio
import pytest

from tests.cancellation.cases import CASES
from tests.cancellation.check import check_cancellation
from tests.cancellation.driver import Mode, cancel_at, cancel_everywhere
from tests.cancellation.world import Case
from tests.sqlite.support import Lock, ids, opened, put, run, stored, threads_left
from workflow_adapters import BuiltInAdapters, CreateRunInput, ManualClock, open_sqlite
from workflow_adapters.sqlite.pool import PooledDatabase

pytestmark = pytest.mark.asyncio


def is_locked(path: Path) -> bool:
    """Whether somebody holds the write lock of the file."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


@asynccontextmanager
async def adapters_on(path: Path) -> AsyncIterator[BuiltInAdapters]:
    async with open_sqlite(path, clock=ManualClock(), durability="normal") as adapters:
        await adapters.migrate()
        yield adapters


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_cancelled_call_has_its_whole_effect_or_none(case: Case, path: Path) -> None:
    async with adapters_on(path) as adapters:

        async def is_idle() -> bool:
            # What a cancel left in flight ends by itself; nothing may stay.
            with anyio.move_on_after(5):
                while await asyncio.to_thread(is_locked, path):  # noqa: ASYNC110 - the lock tells nobody of its end
                    await asyncio.sleep(0.001)
                return True
            return False

        await check_cancellation(case, adapters, is_idle)


def named(run_id: str) -> CreateRunInput:
    return CreateRunInput(id=run_id, workflow_id="w", workflow_name="n", workflow_type="t", input=None)


async def test_a_cancelled_call_leaves_the_callers_transaction_usable(path: Path) -> None:
    async with adapters_on(path) as adapters, aiosqlite.connect(path, isolation_level=None) as connection:
        await connection.execute("PRAGMA foreign_keys = ON")

        async def attempt(n: int, mode: Mode) -> bool:
            name = f"{mode} {n}"

            async def call() -> None:
                async with adapters.bind(connection) as tx:
                    await tx.persistence.create_run(named(name))
                    async with tx.transaction() as inner:
                        # Three statements, each in a hop of its own.
                        await inner.persistence.delete_run(name)

            await connection.execute("BEGIN IMMEDIATE")
            reached = await cancel_at(call, n, mode)
            assert connection.in_transaction
            async with adapters.bind(connection) as tx:
                await tx.persistence.create_run(named(f"after {name}"))
            await connection.execute("COMMIT")
            assert await adapters.persistence.get_run(f"after {name}") is not None
            return reached

        points = await cancel_everywhere(attempt)
        print(f"bind: {points}")  # noqa: T201 - the report of the test
        assert min(points.values()) >= 5


async def write_once(database: PooledDatabase, id: str) -> None:
    await database.write(run(put(id)), single=True)


async def write_in_transaction(database: PooledDatabase, id: str) -> None:
    async with database.transaction() as tx, tx.transaction() as inner:
        await inner.write(run(put(id), put(f"{id}+")))


@pytest.mark.parametrize("write", [write_once, write_in_transaction])
@pytest.mark.parametrize("at_once", [True, False], ids=["as the turn comes", "before the turn comes"])
async def test_a_cancelled_wait_for_the_turn_does_not_lose_it(
    database: PooledDatabase, write: Callable[[PooledDatabase, str], Awaitable[None]], at_once: bool
) -> None:
    async def hold(inside: asyncio.Event, release: asyncio.Event) -> None:
        async with database.transaction():
            inside.set()
            await release.wait()

    async def attempt(n: int, mode: Mode) -> bool:
        inside, release = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(inside, release))
        await inside.wait()
        releasing = asyncio.create_task(release_soon(release))
        just_before = release.set if at_once else lambda: None
        reached = await cancel_at(lambda: write(database, f"{mode} {n}"), n, mode, just_before=just_before)
        with anyio.fail_after(5):
            await asyncio.gather(holder, releasing)
            await write(database, f"after {mode} {n}")
        assert f"after {mode} {n}" in await database.read(ids)
        return reached

    points = await cancel_everywhere(attempt)
    assert min(points.values()) >= 1


async def release_soon(release: asyncio.Event) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    release.set()


@pytest.mark.parametrize("write", [write_once, write_in_transaction])
async def test_a_cancelled_wait_for_a_foreign_lock_takes_it_nowhere(
    path: Path, lock: Lock, write: Callable[[PooledDatabase, str], Awaitable[None]]
) -> None:
    """The nasty one: a BEGIN that was cancelled while it waited must not succeed later and keep the lock."""
    async with opened(path) as database:

        async def attempt(n: int, mode: Mode) -> bool:
            lock.take()
            releasing = asyncio.create_task(release_lock_soon(lock))
            reached = await cancel_at(lambda: write(database, f"{mode} {n}"), n, mode)
            with anyio.fail_after(5):
                await releasing
                await write(database, f"after {mode} {n}")
            assert not is_locked(path)
            assert (f"{mode} {n}" in stored(path)) == (f"{mode} {n}+" in stored(path)) or write is write_once
            return reached

        points = await cancel_everywhere(attempt)
        assert min(points.values()) >= 1
    assert threads_left() == []


async def release_lock_soon(lock: Lock) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    lock.release()
