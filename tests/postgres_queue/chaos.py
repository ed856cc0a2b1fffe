"""Every job once and for all, while the server ends connections and the sweep gives jobs back.

    python -m tests.postgres_queue.chaos --jobs 20000

It starts a server (CONFORMANCE_POSTGRES_RUNG says which kind), fills a queue, lets two processes of sixteen tasks work
through it, says what they met, and exits with 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import unquote, urlsplit

import asyncpg

from conformance.throwaway import start_postgres
from tests.postgres_queue.chaos_worker import TASKS, Met
from tests.postgres_queue.support import jobs
from workflow_adapters import BackendError
from workflow_adapters.postgres.bundle import open_postgres

PROCESSES = 2
CONNECTIONS = 2
EVERY = 0.2
LEASE = timedelta(seconds=1)

END_ALL_BUT_OURS = """
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
IN_TRANSACTION = """
SELECT count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%'
"""


@dataclass
class Outcome:
    """What came of a run, as the observer's own connection and the processes saw it."""

    jobs: int
    seconds: float = 0
    rounds: int = 0
    ended: int = 0
    swept: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    effects: Counter[int] = field(default_factory=Counter)
    """Jobs by how many effects they had."""
    strangers: int = 0
    """Effects of jobs that were never enqueued."""
    in_transaction: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    untouched: int = 0
    unhandled: list[str] = field(default_factory=list)
    said: str = ""
    """What the processes wrote to stderr."""

    def add(self, met: Met, said: str) -> None:
        self.errors.update(met["errors"])
        self.empty += met["empty"]
        self.untouched = max(self.untouched, met["untouched"])
        self.unhandled += met["unhandled"]
        self.said += said

    def faults(self) -> list[str]:
        """What is not as it must be."""
        most = PROCESSES * CONNECTIONS
        wrong = {
            f"the jobs are {self.statuses}": self.statuses != {"COMPLETED": self.jobs},
            f"jobs by their number of effects: {dict(self.effects)}": self.effects != {1: self.jobs},
            f"{self.strangers} effects of unknown jobs": self.strangers > 0,
            # Each connection of another claim may hold the lock of one job that it then does not get.
            f"'empty' was said with {self.untouched} jobs that nobody had claimed yet": self.untouched > most,
            f"unhandled exceptions: {self.unhandled}": bool(self.unhandled),
            f"on stderr: {self.said}": bool(self.said),
            f"{self.in_transaction} connections are idle in transaction": self.in_transaction > 0,
            f"only {self.ended} connections were ended": self.ended <= most,
            "no error was met": not self.errors,
        }
        return [words for words, is_wrong in wrong.items() if is_wrong]

    def text(self) -> str:
        lines = [
            f"{self.jobs} jobs in {self.seconds:.0f} s",
            f"{PROCESSES} processes with {TASKS} tasks and {CONNECTIONS} connections each",
            f"statuses at the end: {self.statuses}",
            f"jobs by their number of rows in effects: {dict(self.effects)}",
            f"connections ended: {self.ended} in {self.rounds} rounds, one every {EVERY:g} s",
            f"jobs given back by the sweep: {self.swept}",
            "errors met:",
            *(f"    {name}: {count}" for name, count in self.errors.most_common()),
            f"claims that said 'empty': {self.empty}, when at most {self.untouched} jobs had not been claimed yet",
            f"exceptions of tasks that nobody handled: {len(self.unhandled)}",
            f"connections idle in transaction at the end: {self.in_transaction}",
        ]
        return "\n".join([*lines, *(f"FAULT: {fault}" for fault in self.faults())])


async def worker(dsn: str) -> tuple[Met, str]:
    command = (sys.executable, "-m", "tests.postgres_queue.chaos_worker", dsn, str(CONNECTIONS))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    try:
        answer, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"a worker ended with {process.returncode}: {said.decode()}")
    return json.loads(answer), said.decode()


async def sweep(dsn: str, outcome: Outcome) -> None:
    async with open_postgres(dsn, max_connections=1) as adapters:
        while True:
            try:
                outcome.swept += await adapters.job_queue.release_stale_jobs(LEASE)
            except BackendError as error:
                outcome.errors[f"{type(error).__name__} of the sweep"] += 1
            await asyncio.sleep(0.1)


async def end_connections(observer: asyncpg.Connection, outcome: Outcome) -> None:
    while True:
        outcome.ended += len(await observer.fetch(END_ALL_BUT_OURS))
        outcome.rounds += 1
        await asyncio.sleep(EVERY)


@asynccontextmanager
async def meanwhile(*works: asyncio.Task[None]) -> AsyncIterator[None]:
    """Tasks that must not end before the block does, and end with it."""
    try:
        yield
        for task in works:
            if task.done():
                task.result()
    finally:
        for task in works:
            task.cancel()
        await asyncio.wait(works)


async def chaos(dsn: str, observer: asyncpg.Connection, number: int) -> Outcome:
    """Fill the queue of a migrated database and have it worked through."""
    outcome = Outcome(number)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: outcome.unhandled.append(str(context)))
    await observer.execute("CREATE TABLE effects (job_id text NOT NULL)")
    async with open_postgres(dsn) as adapters:
        ids = await adapters.job_queue.enqueue_parallel(jobs(number))
    began = time.monotonic()
    trouble = (asyncio.create_task(sweep(dsn, outcome)), asyncio.create_task(end_connections(observer, outcome)))
    async with meanwhile(*trouble):
        for met in await asyncio.gather(*(worker(dsn) for _ in range(PROCESSES))):
            outcome.add(*met)
    outcome.seconds = time.monotonic() - began
    await look(observer, ids, outcome)
    gc.collect()
    await asyncio.sleep(0)
    return outcome


async def look(observer: asyncpg.Connection, ids: list[str], outcome: Outcome) -> None:
    statuses = await observer.fetch("SELECT status::text, count(*) FROM job_queue GROUP BY status")
    outcome.statuses = {row[0]: row[1] for row in statuses}
    effects = Counter(row[0] for row in await observer.fetch("SELECT job_id FROM effects"))
    outcome.effects = Counter(effects[id] for id in ids)
    outcome.strangers = len(effects.keys() - set(ids))
    outcome.in_transaction = await observer.fetchval(IN_TRANSACTION)


async def cheapen_connections(observer: asyncpg.Connection, dsn: str) -> str:
    """Without TLS, and where the server can, with a password that takes no work: tens of thousands will be made."""
    if observer.get_server_version() >= (16,):
        await observer.execute("SET scram_iterations = 1")
        change = "SELECT format('ALTER ROLE %I PASSWORD %L', current_user, $1::text)"
        await observer.execute(await observer.fetchval(change, unquote(urlsplit(dsn).password or "")))
    return f"{dsn}?sslmode=disable"


async def main(number: int) -> bool:
    async with start_postgres() as server, server.database() as dsn:
        async with open_postgres(dsn) as adapters:
            await adapters.migrate()
        observer = await asyncpg.connect(dsn)
        try:
            # A server that was given keeps its own ways.
            reached = dsn if server.rung == "dsn" else await cheapen_connections(observer, dsn)
            outcome = await chaos(reached, observer, number)
        finally:
            await observer.close(timeout=10)
        print(f"PostgreSQL {server.version} ({server.rung})\n{outcome.text()}")  # noqa: T201 - what it is run for
    return not outcome.faults()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.postgres_queue.chaos", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20000)
    sys.exit(0 if asyncio.run(main(parser.parse_args().jobs)) else 1)
