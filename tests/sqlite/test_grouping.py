"""Operations of concurrent tasks share a transaction, and nothing else."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.sqlite.support import Lock, ids, opened, put, put_and_fail, run, stored
from workflow_adapters import BackendError, BackendUnavailableError, NotFoundError, OutcomeUnknownError
from workflow_adapters.errors import BackendBusyError
from workflow_adapters.sql.statement import Operation, Statement
from workflow_adapters.sqlite import execution, grouping, writer
from workflow_adapters.sqlite.calls import Call
from workflow_adapters.sqlite.connection import start
from workflow_adapters.sqlite.patience import IMPATIENT
from workflow_adapters.sqlite.pool import PooledDatabase

pytestmark = pytest.mark.asyncio

READ = Statement("SELECT 1")


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the groups that ran."""
    sizes: list[int] = []

    def counting(connection: Any, calls: Any, patience: Any) -> None:
        sizes.append(len(calls))
        grouping.run_group(connection, calls, patience)

    monkeypatch.setattr(writer, "run_group", counting)
    return sizes


async def test_what_waits_becomes_one_group(database: PooledDatabase, groups: list[int]) -> None:
    await asyncio.gather(*(database.write(run(put(f"{n:02}")), single=True) for n in range(50)))
    assert groups == [1, 49]
    assert await database.read(ids) == [f"{n:02}" for n in range(50)]


async def test_groups_stay_large_while_the_tasks_go_on(database: PooledDatabase, groups: list[int]) -> None:
    async def worker(name: int) -> None:
        for n in range(5):
            await database.write(run(put(f"{name}.{n}")), single=True)

    await asyncio.gather(*(worker(name) for name in range(20)))
    assert sum(groups) == 100
    assert len(groups) <= 7


async def test_a_group_is_bounded(database: PooledDatabase, groups: list[int]) -> None:
    await asyncio.gather(*(database.write(run(put(str(n))), single=True) for n in range(500)))
    assert sum(groups) == 500
    assert max(groups) == writer._LARGEST_GROUP


async def test_one_that_fails_does_not_hurt_the_others(database: PooledDatabase, groups: list[int]) -> None:
    await database.write(run(put("taken")), single=True)
    groups.clear()
    outcomes = await asyncio.gather(
        database.write(run(put("first")), single=True),
        database.write(run(put("a")), single=True),
        database.write(run(put("taken")), single=True),
        database.write(put_and_fail("b")),
        database.write(run(put("c"), put("c"))),
        database.write(run(Statement("INSERT INTO things SELECT 'd', 1 UNION ALL SELECT 'taken', 1")), single=True),
        database.write(run(put("e"), put("f"))),
        return_exceptions=True,
    )
    assert groups == [1, 6]
    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        type(None),
        BackendError,
        NotFoundError,
        BackendError,
        BackendError,
        type(None),
    ]
    assert isinstance(outcomes[2], BackendError)
    assert isinstance(outcomes[2].__cause__, sqlite3.IntegrityError)
    assert await database.read(ids) == ["a", "e", "f", "first", "taken"]


async def test_an_error_that_is_not_sqlites_is_told_as_it_is(database: PooledDatabase) -> None:
    def broken() -> Operation[None]:
        yield put("half")
        raise ZeroDivisionError

    outcomes = await asyncio.gather(
        database.write(run(put("a")), single=True),
        database.write(broken),
        database.write(run(put("b")), single=True),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        await database.write(broken)
    assert await database.read(ids) == ["a", "b"]


async def test_a_full_disk_fails_only_what_does_not_fit(path: Path, groups: list[int]) -> None:
    async with opened(path) as database:
        await database.write(run("PRAGMA max_page_count = 20"), single=True)
        groups.clear()
        outcomes = await asyncio.gather(
            *(database.write(run(put(name)), single=True) for name in ("first", "a", "b")),
            database.write(run(put("large", "x" * 200_000)), single=True),
            database.write(run(put("c"), put("d"))),
            return_exceptions=True,
        )
        assert groups == [1, 4]
        assert [outcome for n, outcome in enumerate(outcomes) if n != 3] == [None] * 4
        assert isinstance(outcomes[3], BackendUnavailableError)
        assert outcomes[3].retryable
        assert await database.read(ids) == ["a", "b", "c", "d", "first"]


async def test_cancelled_before_its_turn_it_has_no_effect(database: PooledDatabase, lock: Lock) -> None:
    lock.take()
    first = asyncio.ensure_future(database.write(run(put("first")), single=True))
    second = asyncio.ensure_future(database.write(run(put("second")), single=True))
    third = asyncio.ensure_future(database.write(run(put("third")), single=True))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    lock.release()
    await asyncio.gather(first, third)
    assert second.cancelled()
    assert await database.read(ids) == ["first", "third"]


async def test_cancelled_while_it_waits_for_the_lock_it_has_no_effect(
    path: Path, lock: Lock, pausing: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With an hour to wait for the lock, which is given up at once.
    async with opened(path, busy_timeout=3600) as database:
        lock.take()
        waiting = asyncio.ensure_future(database.write(run(put("waiting")), single=True))
        await asyncio.to_thread(pausing.wait)
        given_up = threading.Event()

        def run_next(*arguments: Any) -> None:
            given_up.set()
            grouping.run_group(*arguments)

        monkeypatch.setattr(writer, "run_group", run_next)
        waiting.cancel()
        await asyncio.wait([waiting])
        following = asyncio.ensure_future(database.write(run(put("next")), single=True))
        await asyncio.to_thread(given_up.wait)
        lock.release()
        await following
        assert await database.read(ids) == ["next"]


class Gate:
    """An operation that stops half-way, in the connection's thread."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def operation(self, *statements: Statement) -> Operation[None]:
        yield statements[0]
        self.reached.set()
        assert self.open.wait(10)
        for statement in statements[1:]:  # noqa: UP028 - an operation is sent rows, which a tuple's iterator takes not
            yield statement


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelled_in_flight_its_whole_effect_happens(database: PooledDatabase, gate: Gate, times: int) -> None:
    in_flight = asyncio.ensure_future(database.write(lambda: gate.operation(put("a"), put("b"))))
    await asyncio.to_thread(gate.reached.wait)
    neighbour = asyncio.ensure_future(database.write(run(put("neighbour")), single=True))
    for _ in range(times):
        in_flight.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([in_flight])
    gate.open.set()
    await neighbour
    assert in_flight.cancelled()
    assert await database.read(ids) == ["a", "b", "neighbour"]


async def test_cancelled_in_a_group_that_waits_it_has_no_effect(database: PooledDatabase) -> None:
    await database.write(run(put("before")), single=True)
    calls = [Call(operation=run(put(name)), single=True, deadline=0) for name in "abc"]
    calls[1].waiter.cancel()
    connection = database._writer._connection
    assert connection is not None
    await start(connection, lambda opened: grouping.run_group(opened, calls, IMPATIENT))
    assert await database.read(ids) == ["a", "before", "c"]


async def test_whoever_has_time_left_waits_on(database: PooledDatabase, lock: Lock, gate: Gate) -> None:
    reading = asyncio.ensure_future(database.write(lambda: gate.operation(READ, READ), single=True))
    await asyncio.to_thread(gate.reached.wait)
    now = time.monotonic()
    late = Call(operation=run(put("late")), single=True, deadline=now + 3600)
    early = Call(operation=run(put("early")), single=True, deadline=now + 0.05)
    outcomes = asyncio.gather(database._writer.run(early), database._writer.run(late), return_exceptions=True)
    await asyncio.sleep(0)
    lock.take()
    gate.open.set()
    await reading
    await asyncio.wait([early.waiter])
    assert isinstance(early.waiter.exception(), BackendBusyError)
    assert not late.waiter.done()
    lock.release()
    await outcomes
    assert await database.read(ids) == ["late"]


async def test_a_lone_failure_keeps_the_connection(database: PooledDatabase) -> None:
    before = database._writer._connection
    with pytest.raises(NotFoundError):
        await database.write(put_and_fail("a"))
    await database.write(run(put("b")), single=True)
    assert database._writer._connection is before
    assert await database.read(ids) == ["b"]


def failing(monkeypatch: pytest.MonkeyPatch, sql: str, code: int, times: int) -> list[str]:
    """Have a statement fail `times` times with SQLite's error code."""
    failed: list[str] = []
    fetch = execution._fetch

    def fetch_or_fail(connection: Any, text: str, args: Any = ()) -> Any:
        if text == sql and len(failed) < times:
            failed.append(text)
            error = sqlite3.OperationalError("made up")
            error.sqlite_errorcode = code
            raise error
        return fetch(connection, text, args)

    monkeypatch.setattr(execution, "_fetch", fetch_or_fail)
    return failed


async def grouped(database: PooledDatabase) -> Sequence[object]:
    return await asyncio.gather(
        database.write(run(put("first")), single=True),
        database.write(run(put("a")), single=True),
        database.write(run(put("b"), put("c"))),
        return_exceptions=True,
    )


async def test_a_busy_commit_is_tried_again(database: PooledDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = failing(monkeypatch, "COMMIT", sqlite3.SQLITE_BUSY, 3)
    assert list(await grouped(database)) == [None, None, None]
    assert len(failed) == 3
    assert await database.read(ids) == ["a", "b", "c", "first"]


async def test_a_commit_that_stays_busy_wrote_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path, busy_timeout=0.05) as database:
        failing(monkeypatch, "COMMIT", sqlite3.SQLITE_BUSY, 1_000_000)
        _, *others = await grouped(database)
        assert [type(other) for other in others] == [BackendBusyError] * 2
        assert others[0] is not others[1]
        monkeypatch.undo()
        await database.write(run(put("after"), put("more")))
    assert stored(path) == ["after", "first", "more"]


async def test_a_commit_that_fails_for_the_disk_is_done_again_one_by_one(
    database: PooledDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "COMMIT", sqlite3.SQLITE_FULL, 1)
    assert list(await grouped(database)) == [None, None, None]
    assert await database.read(ids) == ["a", "b", "c", "first"]


async def test_after_an_io_error_at_commit_nobody_knows(
    database: PooledDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "COMMIT", sqlite3.SQLITE_IOERR_FSYNC, 1)
    _, *others = await grouped(database)
    assert [type(other) for other in others] == [OutcomeUnknownError] * 2
    await database.write(run(put("after")), single=True)


async def test_a_connection_in_an_unknown_state_is_replaced(
    database: PooledDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = database._writer._connection
    with monkeypatch.context() as broken:
        failing(broken, "COMMIT", sqlite3.SQLITE_IOERR_FSYNC, 1)
        broken.setattr(execution, "roll_back", lambda connection: None)
        with pytest.raises(OutcomeUnknownError):
            await database.write(run(put("lost"), put("lost too")))
    await database.write(run(put("after")), single=True)
    assert database._writer._connection is not before
    assert await database.read(ids) == ["after"]
