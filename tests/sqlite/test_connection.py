"""How a connection is opened, and what is refused at the door."""

import asyncio
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from tests.sqlite.support import Lock, connection_threads, ids, opened, put, run, threads_left
from workflow_adapters import BackendBusyError, BackendError, BackendUnavailableError, ConfigurationError, UsageError
from workflow_adapters.sqlite import connection as connections
from workflow_adapters.sqlite.connection import Target, close_connection, open_connection, outlast, start
from workflow_adapters.sqlite.pool import PooledDatabase

pytestmark = pytest.mark.asyncio


def pragmas(connection: sqlite3.Connection) -> dict[str, object]:
    names = ("foreign_keys", "journal_mode", "synchronous", "busy_timeout", "query_only")
    return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}


@pytest.mark.parametrize(("synchronous", "level"), [("FULL", 2), ("NORMAL", 1), ("OFF", 0)])
@pytest.mark.parametrize("read_only", [False, True])
async def test_every_connection_is_set_up(path: Path, synchronous: Any, level: int, read_only: bool) -> None:
    connection = await open_connection(Target(path=str(path), synchronous=synchronous), read_only=read_only)
    assert await start(connection, pragmas) == {
        "foreign_keys": 1,
        "journal_mode": "wal",
        "synchronous": level,
        "busy_timeout": 0,
        "query_only": int(read_only),
    }
    await close_connection(connection)


async def test_foreign_keys_are_on_on_each_of_ten_connections(path: Path) -> None:
    opening = [open_connection(Target(path=str(path)), read_only=n > 0) for n in range(10)]
    made = await asyncio.gather(*opening)
    assert [(await start(each, pragmas))["foreign_keys"] for each in made] == [1] * 10
    for each in made:
        await close_connection(each)


async def test_a_pragma_that_sqlite_ignores_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(connections.SqliteConnection):
        def execute(self, sql: Any, parameters: Any = (), /) -> Any:
            return super().execute("SELECT 1" if sql == "PRAGMA foreign_keys = ON" else sql, parameters)

    monkeypatch.setattr(connections, "SqliteConnection", Deaf)
    with pytest.raises(ConfigurationError, match="foreign_keys"):
        await open_connection(Target(path=str(path)))
    assert threads_left() == []


async def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.36.0")
    with pytest.raises(ConfigurationError, match=r"SQLite 3\.36\.0 is too old: 3\.37 or newer"):
        await open_connection(Target(path=str(path)))


async def test_what_can_not_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"this is no database" * 100)
    with pytest.raises(BackendUnavailableError) as missing:
        await open_connection(Target(path=str(tmp_path / "no such directory" / "x.db")))
    assert isinstance(missing.value.__cause__, sqlite3.OperationalError)
    with pytest.raises(BackendError):
        await open_connection(Target(path=str(garbage)))
    assert threads_left() == []


async def test_a_file_that_is_locked_for_good_is_a_busy_error(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BackendBusyError):
            await open_connection(Target(path=str(path), busy_timeout=0.05))
        opening = asyncio.create_task(open_connection(Target(path=str(path))))
        await asyncio.sleep(0)
        holder.execute("COMMIT")
        await close_connection(await opening)


async def test_a_cancelled_open_leaves_no_thread(path: Path, pausing: threading.Event) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        opening = asyncio.create_task(open_connection(Target(path=str(path), busy_timeout=0.2)))
        await asyncio.to_thread(pausing.wait)
        opening.cancel()
        await asyncio.sleep(0)
        opening.cancel()
        await asyncio.wait([opening])
    assert opening.cancelled()
    assert threads_left() == []


async def test_calls_begin_in_order_and_outlive_a_cancel(path: Path) -> None:
    connection = await open_connection(Target(path=str(path)))
    order: list[int] = []
    gate = threading.Event()
    first = start(connection, lambda _: (gate.wait(10), order.append(1)))
    second = start(connection, lambda _: order.append(2))
    waiting = asyncio.create_task(outlast(second))
    for _ in range(2):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert first.done()
    assert order == [1, 2]
    await close_connection(connection)


async def test_a_call_gives_one_future_and_the_public_way_still_works(path: Path) -> None:
    """What `start` relies on in aiosqlite: its method suspends once, on the future that the thread resolves."""
    connection = await open_connection(Target(path=str(path)))
    future = start(connection, lambda opened: opened.execute("SELECT 41 + 1").fetchone()[0])
    assert isinstance(future, asyncio.Future)
    assert await future == 42
    failing = start(connection, lambda opened: opened.execute("SELECT nothing"))
    with pytest.raises(sqlite3.OperationalError):
        await failing
    assert list(await connection.execute_fetchall("SELECT ?", (1,))) == [(1,)]
    await close_connection(connection)
    with pytest.raises(BackendUnavailableError):
        start(connection, pragmas)


async def test_the_threads_keep_no_process_alive(database: PooledDatabase) -> None:
    await database.read(ids)
    assert [thread.daemon for thread in connection_threads()] == [True, True]


async def test_close_waits_for_nobody_and_may_be_repeated(path: Path, lock: Lock, pausing: threading.Event) -> None:
    # Closing must not wait for the lock: then this test would end in an hour.
    async with opened(path, busy_timeout=3600) as database:
        lock.take()
        in_flight = asyncio.create_task(database.write(run(put("a")), single=True))
        await asyncio.to_thread(pausing.wait)
        waiting = asyncio.create_task(database.write(run(put("b")), single=True))
        await asyncio.sleep(0)
        await database.close()
        outcomes = await asyncio.gather(in_flight, waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [BackendBusyError, UsageError]
        await database.close()
        for call in (database.read(ids), database.write(run(put("c")), single=True)):
            with pytest.raises(UsageError):
                await call
        with pytest.raises(UsageError):
            database.transaction()
    assert threads_left() == []


async def test_close_goes_on_through_cancels(path: Path) -> None:
    async with opened(path, readers=3) as database:
        await asyncio.gather(*(database.read(ids) for _ in range(9)))
        assert len(connection_threads()) == 4
        closing_task = asyncio.create_task(database.close())
        while not closing_task.done():
            await asyncio.sleep(0)
            closing_task.cancel()
        assert closing_task.cancelled()
        assert threads_left() == []


async def test_another_loop_is_refused(database: PooledDatabase) -> None:
    def elsewhere() -> None:
        asyncio.run(database.read(ids))

    with pytest.raises(UsageError):
        await asyncio.to_thread(elsewhere)


async def test_a_forked_child_is_refused(database: PooledDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        for call in (database.read(ids), database.write(run(put("a")), single=True)):
            with pytest.raises(UsageError, match="fork"):
                await call
        with pytest.raises(UsageError, match="fork"):
            database.transaction()
    assert await database.read(ids) == []


async def test_readers_are_bounded_and_each_wait_ends(path: Path) -> None:
    async with opened(path, readers=2) as database:
        await asyncio.gather(*(database.read(ids) for _ in range(20)))
        assert len(database._readers._idle) == 2


async def test_a_read_that_finds_no_reader_is_a_busy_error(path: Path) -> None:
    gate = threading.Event()

    def slow() -> Any:
        gate.wait(10)
        return (yield from ids())

    async with opened(path, readers=1, busy_timeout=0.05) as database:
        holding = asyncio.create_task(database.read(slow))
        await asyncio.sleep(0)
        with pytest.raises(BackendBusyError):
            await database.read(ids)
        gate.set()
        assert await holding == []
        assert await database.read(ids) == []


async def test_a_reader_refuses_to_write(database: PooledDatabase) -> None:
    with pytest.raises(BackendUnavailableError):
        await database.read(run(put("a")))


async def test_aiosqlites_own_connections_are_left_alone() -> None:
    async with aiosqlite.connect(":memory:") as connection:
        assert list(await connection.execute_fetchall("SELECT 1")) == [(1,)]
