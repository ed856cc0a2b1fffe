"""P1: enqueueing beside peers. P12: a run with its jobs and an event, beside the same statements alone."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import asyncpg

from benchmarks.postgres_support import Databases, in_turns, say
from workflow_adapters import CreateOutboxEventInput, CreateRunInput, EnqueueJobInput
from workflow_adapters.ids import new_id
from workflow_adapters.postgres.bundle import PostgresAdapters, open_postgres

SINGLE = 1_000
BULKS = 10
BULK = 1_000
TRANSACTIONS = 300
WARM_UP = 20
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PAYLOAD = {"n": 1}


def jobs(number: int) -> list[EnqueueJobInput]:
    run = new_id()
    return [
        EnqueueJobInput(workflow_run_id=run, workflow_id="w", stage_id=f"s{position}", payload=dict(PAYLOAD))
        for position in range(number)
    ]


async def ours(dsn: str, calls: int, size: int) -> float:
    """With notifications, which the peers send too. The inputs are there before, as theirs are."""
    given = [jobs(size) for _ in range(calls)]
    async with open_postgres(dsn) as adapters:
        await adapters.job_queue.enqueue_parallel(jobs(size))
        started = time.perf_counter()
        for some in given:
            await adapters.job_queue.enqueue_parallel(some)
        return calls * size / (time.perf_counter() - started)


async def pgqueuer(dsn: str, calls: int, size: int) -> float:
    import pgqueuer.queries  # pyright: ignore[reportMissingImports]  # a peer, which may not be there

    connection = await asyncpg.connect(dsn)
    queries: Any = pgqueuer.queries.Queries.from_asyncpg_connection(connection)
    if not await queries.schema_is_installed():
        await queries.install()
    arguments: tuple[Any, ...] = ("task", b'{"n": 1}', 5)
    if size > 1:
        arguments = (["task"] * size, [b'{"n": 1}'] * size, [5] * size)
    await queries.enqueue(*arguments)
    started = time.perf_counter()
    for _ in range(calls):
        await queries.enqueue(*arguments)
    rate = calls * size / (time.perf_counter() - started)
    await connection.close()
    return rate


async def procrastinate(dsn: str, calls: int, size: int) -> float:
    import procrastinate as peer  # pyright: ignore[reportMissingImports]  # a peer, which may not be there

    app: Any = peer.App(connector=peer.PsycopgConnector(conninfo=dsn, min_size=1, max_size=1))
    task = app.task(name="task")(print)
    async with app.open_async():
        connection = await asyncpg.connect(dsn)
        if not await connection.fetchval("SELECT to_regclass('procrastinate_jobs')::text"):
            await app.schema_manager.apply_schema_async()
        await connection.close()
        await task.defer_async(**PAYLOAD)
        started = time.perf_counter()
        for _ in range(calls):
            if size == 1:
                await task.defer_async(**PAYLOAD)
            else:
                await task.batch_defer_async(*([PAYLOAD] * size))
        return calls * size / (time.perf_counter() - started)


PEERS: dict[str, Callable[[str, int, int], Awaitable[float]]] = {"pgqueuer": pgqueuer, "procrastinate": procrastinate}


async def p1(databases: Databases, repetitions: int) -> None:
    there = {name: peer for name, peer in PEERS.items() if importlib.util.find_spec(name)}
    if not there:
        print("P1   left out: neither pgqueuer nor procrastinate is installed")
    for what, calls, size in (("one by one", SINGLE, 1), (f"{BULK:,} per call", BULKS, BULK)):
        own, *others = [await databases.filled() for _ in (None, *there)]
        variants: dict[str, Callable[[], Awaitable[float]]] = {
            "ours": lambda own=own, calls=calls, size=size: ours(own, calls, size)
        }
        for (name, peer), dsn in zip(there.items(), others, strict=True):
            variants[name] = lambda peer=peer, dsn=dsn, calls=calls, size=size: peer(dsn, calls, size)
        rates = await in_turns(variants, repetitions)
        for name in there:
            goal = ">= 1.5" if name == "pgqueuer" else ">= 5" if size > 1 else ""
            say(
                "P1",
                f"enqueue {what} / {name}",
                rates["ours"] / rates[name],
                goal,
                f"{rates['ours']:.0f} / {rates[name]:.0f} jobs/s",
            )


class RecordingConnection(asyncpg.Connection):
    """Takes down what goes over it."""

    said: list[tuple[str, tuple[Any, ...]]] = []  # noqa: RUF012 - one list for all, until it is read

    async def fetch(self, query: str, *args: Any, **kwargs: Any) -> list[Any]:
        self.said.append((query, args))
        return await super().fetch(query, *args, **kwargs)


async def a_run(adapters: PostgresAdapters) -> None:
    async with adapters.transaction() as tx:
        run = await tx.persistence.create_run(
            CreateRunInput(id=new_id(), workflow_id="w", workflow_name="w", workflow_type="t", input=dict(PAYLOAD))
        )
        await tx.job_queue.enqueue_parallel(
            [
                EnqueueJobInput(workflow_run_id=run.id, workflow_id="w", stage_id=f"s{position}", payload=dict(PAYLOAD))
                for position in range(10)
            ]
        )
        await tx.persistence.append_outbox_events(
            [
                CreateOutboxEventInput(
                    workflow_run_id=run.id,
                    event_type="t",
                    payload=dict(PAYLOAD),
                    causation_id="c",
                    occurred_at=datetime.now(UTC),
                )
            ]
        )


async def runs_by_the_adapters(dsn: str) -> float:
    async with open_postgres(dsn, wake_ups=False) as adapters:
        for _ in range(WARM_UP):
            await a_run(adapters)
        started = time.perf_counter()
        for _ in range(TRANSACTIONS):
            await a_run(adapters)
        return TRANSACTIONS / (time.perf_counter() - started)


async def runs_by_bare_statements(dsn: str) -> float:
    """The statements that the adapters run, with ids of their own each time and nothing else around them."""
    RecordingConnection.said.clear()
    async with open_postgres(dsn, wake_ups=False, connect={"connection_class": RecordingConnection}) as adapters:
        await a_run(adapters)
        RecordingConnection.said.clear()
        await a_run(adapters)
    recorded = [(query, args) for query, args in RecordingConnection.said if args]
    connection = await asyncpg.connect(dsn)
    took = 0.0
    for position in range(WARM_UP + TRANSACTIONS):
        renamed: dict[str, str] = {}
        statements = [(query, [_renamed(value, renamed) for value in args]) for query, args in recorded]
        started = time.perf_counter()
        async with connection.transaction(isolation="read_committed"):
            for query, args in statements:
                await connection.fetch(query, *args)
        took += time.perf_counter() - started if position >= WARM_UP else 0.0
    await connection.close()
    return TRANSACTIONS / took


def _renamed(value: Any, renamed: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, renamed) for item in value]
    is_id = isinstance(value, str) and UUID.fullmatch(value)
    return renamed.setdefault(value, new_id()) if is_id else value


async def p12(databases: Databases, repetitions: int) -> None:
    ours, bare = await databases.filled(), await databases.filled()
    rates = await in_turns(
        {"ours": lambda: runs_by_the_adapters(ours), "bare": lambda: runs_by_bare_statements(bare)}, repetitions
    )
    detail = f"{rates['ours']:.0f} / {rates['bare']:.0f} transactions/s"
    say(
        "P12",
        "a run, 10 jobs and an event in one transaction / bare asyncpg",
        rates["ours"] / rates["bare"],
        ">= 0.7",
        detail,
    )
