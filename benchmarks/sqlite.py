"""Claims and acknowledgements on SQLite, beside the same statements without the adapters.

    python -m benchmarks.sqlite [--repetitions 5] [--directory DIRECTORY] [--durability full]

One cycle is a claim and its fenced acknowledgement, each durable before the next step. All variants work on copies of
one file, in an order that is shuffled anew for each repetition; what counts are the ratios within one run.

- S1: 50 tasks of one process, beside raw sqlite3 with a commit for each statement.
- S2: one task, beside aiosqlite with one hop to its thread for each statement.
- S3: four processes on one file: how long a claim takes, and how even the shares are.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import aiosqlite

from workflow_adapters import EnqueueJobInput, JobAckFence, SystemClock, open_sqlite
from workflow_adapters.options import Durability
from workflow_adapters.queue_settings import QueueSettings
from workflow_adapters.sql.columns import instant_to_ms
from workflow_adapters.sql.database import Database
from workflow_adapters.sql.statement import Statement
from workflow_adapters.sql.tables import CLAIMED_JOB
from workflow_adapters.sqlite.execution import STYLE
from workflow_adapters.sqlite.job_queue import SqliteJobQueue
from workflow_adapters.sqlite.job_signal import JobSignal

JOBS = 20_000
CYCLES = {1: 2_000, 10: 6_000, 50: 16_000}
PROCESSES = 4
SECONDS = 2.0

COLUMNS = [column.attribute for column in CLAIMED_JOB.columns]
ID, STARTED_AT, ATTEMPT = (COLUMNS.index(name) for name in ("job_id", "started_at", "attempt"))
LEVELS = {"full": "FULL", "normal": "NORMAL"}


class Recorded(Exception):  # noqa: N818 - it carries a statement out of the adapter that was about to run it
    pass


class Recorder:
    """A database that takes down the statement of a write."""

    def now(self) -> datetime:
        return SystemClock().now()

    async def write(self, operation: Callable[[], Any], *, single: bool = False) -> Any:
        raise Recorded(next(operation()))


class Bare:
    """A statement of the adapter's, with no more around it than a list of its arguments."""

    def __init__(self, call: Callable[[SqliteJobQueue], Awaitable[object]]) -> None:
        statement = recorded(call)
        rendered = STYLE.render(statement.text)
        self.sql = rendered.text
        self._order = rendered.order or ()
        self._arguments = [STYLE.argument(argument) for argument in statement.args]

    def arguments(self, *first: object) -> list[object]:
        """Those of the statement with the first ones replaced."""
        given = [*first, *self._arguments[len(first) :]]
        return [given[position] for position in self._order]


def recorded(call: Callable[[SqliteJobQueue], Awaitable[object]]) -> Statement:
    queue = SqliteJobQueue(cast("Database", Recorder()), QueueSettings(), JobSignal())
    try:
        call(queue).__await__().send(None)
    except Recorded as carried:
        return carried.args[0]
    raise AssertionError


CLAIM = Bare(lambda queue: queue.dequeue())
ACKNOWLEDGE = Bare(lambda queue: queue.complete("id", JobAckFence(started_at=SystemClock().now(), attempt=1)))


def claim_arguments() -> list[object]:
    return CLAIM.arguments(instant_to_ms(SystemClock().now()))


def acknowledge_arguments(row: Any) -> list[object]:
    return ACKNOWLEDGE.arguments(row[ID], row[STARTED_AT], row[ATTEMPT], instant_to_ms(SystemClock().now()))


def raw(path: Path, durability: str, cycles: int) -> float:
    """Cycles a second of sqlite3 in the thread that calls."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA synchronous = {LEVELS[durability]}")
        started = time.perf_counter()
        for _ in range(cycles):
            (row,) = connection.execute(CLAIM.sql, claim_arguments()).fetchall()
            assert connection.execute(ACKNOWLEDGE.sql, acknowledge_arguments(row)).fetchall()
        return cycles / (time.perf_counter() - started)


async def one_hop(path: Path, durability: str, cycles: int) -> float:
    """Cycles a second of aiosqlite with a hop for each statement."""
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await connection.execute_fetchall(f"PRAGMA synchronous = {LEVELS[durability]}")
        started = time.perf_counter()
        for _ in range(cycles):
            (row,) = await connection.execute_fetchall(CLAIM.sql, claim_arguments())
            assert await connection.execute_fetchall(ACKNOWLEDGE.sql, acknowledge_arguments(row))
        return cycles / (time.perf_counter() - started)


def adapter(path: Path, durability: Durability, tasks: int) -> float:
    """Cycles a second of the adapter's job queue, by so many tasks."""
    return asyncio.run(_adapter(path, durability, CYCLES[tasks], tasks))


async def _adapter(path: Path, durability: Durability, cycles: int, tasks: int) -> float:
    async with open_sqlite(path, durability=durability) as adapters:
        queue = adapters.job_queue

        async def work() -> None:
            for _ in range(cycles // tasks):
                claimed = await queue.dequeue()
                assert claimed is not None
                await queue.complete(claimed.job_id, claimed.fence)

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(tasks)))
        return cycles // tasks * tasks / (time.perf_counter() - started)


async def claim_for(path: str, durability: Durability, tasks: int, start: float) -> list[float]:
    """Claim and acknowledge for a while; how long each claim took."""
    async with open_sqlite(path, durability=durability) as adapters:
        queue = adapters.job_queue
        took: list[float] = []

        async def work() -> None:
            while time.time() < start + SECONDS:
                before = time.perf_counter()
                claimed = await queue.dequeue()
                took.append(time.perf_counter() - before)
                if claimed is None:
                    return
                await queue.complete(claimed.job_id, claimed.fence)

        await asyncio.sleep(start - time.time())
        await asyncio.gather(*(work() for _ in range(tasks)))
        return took


def claim_in_process(path: str, durability: Durability, tasks: int, start: float, said: Any) -> None:
    said.put(asyncio.run(claim_for(path, durability, tasks, start)))


def several_processes(path: Path, durability: Durability, tasks: int) -> tuple[float, float, float]:
    """Cycles a second, the 99th percentile of a claim in milliseconds, the least share by the greatest."""
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    arguments = (str(path), durability, tasks, time.time() + 2, said)
    processes = [context.Process(target=claim_in_process, args=arguments) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    claims: list[list[float]] = [said.get() for _ in processes]
    for process in processes:
        process.join()
    everything = sorted(one for each in claims for one in each)
    shares = [len(each) for each in claims]
    return len(everything) / SECONDS, everything[int(0.99 * len(everything))] * 1000, min(shares) / max(shares)


async def fill(path: Path, jobs: int) -> None:
    async with open_sqlite(path, durability="normal") as adapters:
        await adapters.migrate()
        await adapters.job_queue.enqueue_parallel(
            [EnqueueJobInput(workflow_run_id=f"run-{n}", workflow_id="w", stage_id="s") for n in range(jobs)]
        )


def measure(directory: Path, durability: Durability, repetitions: int) -> None:
    filled = directory / "filled.db"
    asyncio.run(fill(filled, JOBS))
    variants: dict[str, Callable[[Path], float]] = {
        "raw sqlite3, a commit per statement": lambda path: raw(path, durability, CYCLES[1]),
        "aiosqlite, a hop per statement": lambda path: asyncio.run(one_hop(path, durability, CYCLES[1])),
    }
    for tasks in CYCLES:
        variants[f"adapter, {tasks} tasks"] = partial(adapter, durability=durability, tasks=tasks)
    rates: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repetitions):
        for name in random.sample(list(variants), len(variants)):
            rates[name].append(variants[name](copy_of(filled)))
    medians = {name: statistics.median(each) for name, each in rates.items()}
    for name, rate in medians.items():
        print(f"{name:40} {rate:8.0f} cycles/s   {min(rates[name]):8.0f} to {max(rates[name]):8.0f}")
    raw_rate, hop_rate = medians["raw sqlite3, a commit per statement"], medians["aiosqlite, a hop per statement"]
    print(f"S1  50 tasks / raw sqlite3            {medians['adapter, 50 tasks'] / raw_rate:.2f}   (goal 3)")
    print(f"S2  1 task / aiosqlite, one hop       {medians['adapter, 1 tasks'] / hop_rate:.2f}   (goal 0.85)")


def measure_processes(directory: Path, durability: Durability, repetitions: int) -> None:
    filled = directory / "filled.db"
    for tasks in (1, 10, 50):
        runs = [several_processes(copy_of(filled), durability, tasks) for _ in range(repetitions)]
        rate, p99, share = (statistics.median(column) for column in zip(*runs, strict=True))
        print(
            f"S3  {PROCESSES} processes x {tasks:2} tasks   p99 of a claim {p99:5.1f} ms (goal 50)   "
            f"least share {share:.2f} (goal 0.5)   {rate:.0f} cycles/s"
        )


def copy_of(filled: Path) -> Path:
    """A fresh copy; the one before it is gone."""
    path = filled.with_name("copy.db")
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copy(filled, path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Claims and acknowledgements on SQLite")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=None, help="where the files are put; a disk that syncs")
    parser.add_argument("--durability", choices=("full", "normal"), default="full")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        measure(Path(directory), options.durability, options.repetitions)
        # Four processes with fifty tasks each would be through with the first ones before their time is up.
        filled = Path(directory) / "filled.db"
        filled.unlink()
        asyncio.run(fill(filled, 6 * JOBS))
        measure_processes(Path(directory), options.durability, options.repetitions)


if __name__ == "__main__":
    main()
