"""What the measurements on Postgres share: databases, rows in bulk, statements without the adapters, and ratios."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import asyncpg

from workflow_adapters import JobQueueFairness, ServedDefinition
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.database import PostgresDatabase
from workflow_adapters.postgres.detect import PostgresFacts
from workflow_adapters.postgres.job_port import PostgresQueueSettings
from workflow_adapters.postgres.job_queue import PostgresJobQueue
from workflow_adapters.postgres.style import PostgresStyle
from workflow_adapters.sql.statement import Statement

STYLE = PostgresStyle("public", "Status")
CLAIMS = 300
WARM_UP = 20


class Databases:
    """Makes databases on one server, migrated and filled."""

    def __init__(self, create: Callable[[], str]) -> None:
        self._create = create

    async def filled(self, *rows: dict[str, Any]) -> str:
        """A database with a schema of ours, and for each of `rows` the jobs that `fill` makes of it."""
        dsn = self._create()
        async with open_postgres(dsn) as adapters:
            await adapters.migrate()
        connection = await asyncpg.connect(dsn)
        for some in rows:
            await fill(connection, **some)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
        await connection.close()
        return dsn


async def fill(  # noqa: PLR0913 - a parameter for each column that a flood may differ in
    connection: asyncpg.Connection[asyncpg.Record],
    number: int,
    prefix: str = "a",
    *,
    status: str = "PENDING",
    priority: int = 5,
    workflow: str = "'w'",
    version: str = "NULL",
    group: str = "NULL",
    due_at: str = "NULL",
    year: int = 2024,
) -> None:
    """So many jobs; strings are SQL over n."""
    await connection.execute(
        f"""
        INSERT INTO job_queue (
            id, "createdAt", "updatedAt", "workflowRunId", "stageId", status, priority, attempt, "startedAt",
            "lockedAt", "nextPollAt", payload
        )
        SELECT
            '{prefix}' || lpad(n::text, 9, '0'), at, at, '{prefix}-' || n, 's', '{status}', {priority},
            CASE WHEN '{status}' = 'PENDING' THEN 0 ELSE 1 END,
            CASE WHEN '{status}' <> 'PENDING' THEN at END, CASE WHEN '{status}' = 'RUNNING' THEN at END, {due_at},
            jsonb_strip_nulls(
                jsonb_build_object('_workflowId', {workflow}, '_definitionVersion', {version}, '_groupKey', {group})
            )
        FROM generate_series(1, {number}) AS n, LATERAL (
            SELECT timestamp '{year}-01-01' + n * interval '1 ms'
        ) AS stamp (at)
        """
    )


async def set_synchronous_commit(dsn: str, value: str) -> None:
    """For the sessions that begin from now on."""
    connection = await asyncpg.connect(dsn)
    name = await connection.fetchval("SELECT quote_ident(current_database())")
    await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {value}")
    await connection.close()


class Recorded(Exception):  # noqa: N818 - it carries a statement out of the adapter that was about to run it
    pass


class Recorder:
    """A database that takes down the statement of a write."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def facts(self) -> PostgresFacts:
        return PostgresFacts()

    def watch_plan(self, text: str) -> None:
        pass

    async def write(self, operation: Callable[[], Any], *, single: bool = False) -> Any:
        raise Recorded(next(operation()))


def statement_of(call: Callable[[PostgresJobQueue], Awaitable[object]]) -> Statement:
    """The statement that a call runs."""
    queue = PostgresJobQueue(cast("PostgresDatabase", Recorder()), PostgresQueueSettings())
    try:
        call(queue).__await__().send(None)
    except Recorded as carried:
        return carried.args[0]
    raise AssertionError


def sql_of(statement: Statement) -> str:
    return STYLE.render(statement.text).text


async def pgbench(dsn: str, script: str, clients: int, seconds: float) -> float:
    """Transactions a second of a script, each of its statements prepared once per client."""
    program = shutil.which("pgbench")
    if program is None:
        raise SystemExit("pgbench is not installed: it comes with the server's package")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "script.sql"
        path.write_text(script)
        process = await asyncio.create_subprocess_exec(
            program, "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(int(seconds)), "-f", path, dsn,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, complaint = await process.communicate()
    found = re.search(rb"tps = ([\d.]+) \(without", said)
    if process.returncode or found is None:
        raise SystemExit(complaint.decode())
    return float(found[1])


async def in_turns(variants: dict[str, Callable[[], Awaitable[float]]], repetitions: int) -> dict[str, float]:
    """The median of each, measured in an order that is shuffled anew for each repetition."""
    results: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repetitions):
        for name in random.sample(list(variants), len(variants)):
            results[name].append(await variants[name]())
    return {name: statistics.median(each) for name, each in results.items()}


@dataclass(frozen=True)
class Claimer:
    """Somebody who claims from a database."""

    dsn: str
    serves: Sequence[ServedDefinition] | None = None
    fairness: JobQueueFairness | None = None


async def latencies(first: Claimer, second: Claimer, claims: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each claim. The two take turns claim by claim, so that whatever else goes on meets both alike.

    Each job is completed before the next claim, and all are as before afterwards.
    """
    took: tuple[list[float], list[float]] = ([], [])
    async with (
        open_postgres(first.dsn, fairness=first.fairness, wake_ups=False) as one,
        open_postgres(second.dsn, fairness=second.fairness, wake_ups=False) as other,
    ):
        pair = [(one, first, took[0]), (other, second, took[1])]
        for position in range(WARM_UP + claims):
            for adapters, claimer, into in random.sample(pair, 2):
                started = time.perf_counter()
                job = await adapters.job_queue.dequeue(claimer.serves)
                if position >= WARM_UP:
                    into.append((time.perf_counter() - started) * 1000)
                assert job is not None
                await adapters.job_queue.complete(job.job_id, job.fence)
    for dsn in {first.dsn, second.dsn}:
        connection = await asyncpg.connect(dsn)
        await connection.execute("UPDATE job_queue SET status = 'PENDING', attempt = 0 WHERE status = 'COMPLETED'")
        await connection.execute("VACUUM job_queue")
        await connection.close()
    return took


async def compare(line: str, what: str, goal: str, plain: Claimer, other: Claimer, repetitions: int) -> None:
    """Say how much longer the other's claims take: medians over the repetitions."""
    halves: list[tuple[float, float]] = []
    ends: list[float] = []
    for _ in range(repetitions):
        took = await latencies(plain, other, CLAIMS)
        halves.append((percentile(took[1], 0.5), percentile(took[0], 0.5)))
        ends.append(percentile(took[1], 0.99) / percentile(took[0], 0.99))
    slower, faster = (statistics.median(each) for each in zip(*halves, strict=True))
    detail = f"p50 {slower:.3f} / {faster:.3f} ms, p99 ratio {statistics.median(ends):.2f}"
    say(line, what, statistics.median(one / two for one, two in halves), goal, detail)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def say(line: str, what: str, ratio: float, goal: str, detail: str) -> None:
    print(f"{line:4} {what:58} {ratio:6.2f}   (goal {goal})   {detail}", flush=True)
