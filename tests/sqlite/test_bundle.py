"""The bundle on SQLite: opening, throwaway databases, what its transactions share, sizes."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
import pytest
import trio

from tests.sqlite.claimers import job
from tests.sqlite.support import threads_left
from workflow_adapters import (
    BackendUnavailableError,
    BuiltInAdapters,
    ConfigurationError,
    CreateAICallInput,
    CreateAnnotationInput,
    CreateOutboxEventInput,
    CreateRunInput,
    SchemaError,
    SystemClock,
    UsageError,
    open_adapters,
    open_sqlite,
)
from workflow_adapters.sqlite import job_queue

pytestmark = pytest.mark.asyncio

MANY = 33_000  # a statement takes 32,766 values


def named(run_id: str) -> CreateRunInput:
    return CreateRunInput(id=run_id, workflow_id="w", workflow_name="n", workflow_type="t", input=None)


def event(run_id: str, text: str = "") -> CreateOutboxEventInput:
    return CreateOutboxEventInput(
        workflow_run_id=run_id, event_type="e", payload=text, causation_id="c", occurred_at=datetime.now(UTC)
    )


def ai_call(request_id: str | None = None) -> CreateAICallInput:
    return CreateAICallInput(
        topic="t",
        call_type="chat",
        model_key="m",
        model_id="m",
        prompt="",
        response="",
        input_tokens=1,
        output_tokens=1,
        cost=0.1,
        request_id=request_id,
    )


@asynccontextmanager
async def migrated(path: Path) -> AsyncIterator[BuiltInAdapters]:
    """Not a fixture: a bundle is entered and left in one task."""
    async with open_sqlite(path) as adapters:
        await adapters.migrate()
        yield adapters


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_a_throwaway_database_is_private_migrated_and_gone_at_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with open_adapters("sqlite://") as one, open_adapters("sqlite://") as other:
        await one.check_schema()
        await one.persistence.create_run(named("r"))
        assert await other.persistence.get_run("r") is None
        async with one.transaction() as tx:
            await tx.persistence.create_run(named("s"))
            # A reader beside the open transaction.
            assert await one.persistence.get_run("s") is None
        assert await one.persistence.get_run("s") is not None
        assert len(files_in(tmp_path)) == 2
    assert files_in(tmp_path) == []
    assert threads_left() == []


@pytest.mark.parametrize("times", [1, 2])
async def test_a_throwaway_database_is_gone_however_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    finished = False
    for suspensions in range(200):

        async def use() -> None:
            async with open_adapters("sqlite://") as adapters:
                await adapters.persistence.create_run(named("r"))

        using = asyncio.create_task(use())
        for _ in range(suspensions):
            await asyncio.sleep(0)
        for _ in range(times):
            using.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([using])
        finished = not using.cancelled()
        assert files_in(tmp_path) == []
        if finished:
            break
    assert threads_left() == []


@pytest.mark.parametrize(
    ("path", "options", "named"),
    [
        ("x.db", {"durability": "off"}, "durability"),
        ("x.db", {"busy_timeout": timedelta(0)}, "busy_timeout"),
        ("x.db", {"readers": 0}, "readers"),
        ("x.db", {"synchronous": "OFF"}, "synchronous"),
        (":memory:", {}, "path"),
        ("", {}, "path"),
        ("a\0b", {}, "path"),
        ("x.db", {"durability": ["full"]}, "durability"),
        ("x.db", {"busy_timeout": 5}, "busy_timeout"),
        ("x.db", {"readers": "4"}, "readers"),
        ("x.db", {"readers": True}, "readers"),
        ("x.db", {"clock": 3}, "clock"),
        ("x.db", {"clock": SystemClock}, "clock"),
        (b"x.db", {}, "path"),
        (5, {}, "path"),
        ("\ud800.db", {}, "path"),
    ],
)
async def test_what_makes_no_sense_is_refused(path: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        async with open_sqlite(path, **options):
            pass


async def test_a_relative_url_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_adapters("sqlite:///here.db", durability="normal") as adapters:
        await adapters.migrate()
    assert (tmp_path / "here.db").exists()


async def test_without_a_schema_every_port_says_migrate(path: Path) -> None:
    async with open_sqlite(path) as adapters:
        for call in (
            adapters.persistence.create_run(named("r")),
            adapters.persistence.get_run("r"),
            adapters.persistence.append_outbox_events([event("r")]),
            adapters.persistence.ensure_definition_versioning_detected(),
            adapters.job_queue.dequeue(),
            adapters.step_ledger.list("s"),
            adapters.ai_call_logger.get_stats(""),
            adapters.operations.queue_stats(),
            adapters.check_schema(),
        ):
            with pytest.raises(SchemaError, match=r"await adapters\.migrate\(\)"):
                await call
        await adapters.migrate()
        await adapters.check_schema()
        await adapters.persistence.create_run(named("r"))


async def test_a_run_its_jobs_and_its_events_are_seen_at_one_instant(path: Path) -> None:
    async with migrated(path) as adapters:
        seen: set[tuple[bool, int, int]] = set()

        async def watch(stop: asyncio.Event) -> None:
            while not stop.is_set():
                seen.add(await asyncio.to_thread(look))

        def look() -> tuple[bool, int, int]:
            with closing(sqlite3.connect(path)) as connection:
                return connection.execute(
                    """
                    SELECT EXISTS (SELECT 1 FROM workflow_runs), (SELECT count(*) FROM job_queue),
                           (SELECT count(*) FROM outbox_events)
                    """
                ).fetchone()

        stop = asyncio.Event()
        watching = asyncio.create_task(watch(stop))
        async with adapters.transaction() as tx:
            await tx.persistence.create_run(named("r"))
            await tx.job_queue.enqueue_parallel([job(n) for n in range(10)])
            await tx.persistence.append_outbox_events([event("r")])
            seen.add(await asyncio.to_thread(look))
        seen.add(await asyncio.to_thread(look))
        stop.set()
        await watching
        assert seen == {(0, 0, 0), (1, 10, 1)}


async def test_the_caller_s_rows_share_the_transaction(path: Path) -> None:
    async with migrated(path) as adapters:
        async with adapters.transaction() as tx:
            await tx.connection.execute("CREATE TABLE orders (id TEXT) STRICT")
            await tx.connection.execute("INSERT INTO orders VALUES ('o')")
            await tx.persistence.create_run(named("r"))
        async with aiosqlite.connect(path, isolation_level=None) as connection:
            await connection.execute("PRAGMA foreign_keys = ON")
            await connection.execute("BEGIN IMMEDIATE")
            async with adapters.bind(connection) as tx:
                assert tx.connection is connection
                await connection.execute("INSERT INTO orders VALUES ('p')")
                await tx.persistence.create_run(named("s"))
                tx.ai_call_logger.log_call(ai_call())
                assert (await tx.ai_call_logger.get_stats("")).total_calls == 1
                assert (await adapters.ai_call_logger.get_stats("")).total_calls == 0
            await connection.execute("ROLLBACK")
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT id FROM orders").fetchall() == [("o",)]
            assert connection.execute("SELECT id FROM workflow_runs").fetchall() == [("r",)]


async def test_a_logged_call_becomes_durable_by_itself(path: Path) -> None:
    def written() -> bool:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT count(*) FROM ai_calls").fetchone() == (1,)

    async with migrated(path) as adapters:
        adapters.ai_call_logger.log_call(ai_call())
        with anyio.fail_after(5):
            while not await asyncio.to_thread(written):  # noqa: ASYNC110 - a file tells nobody that it changed
                await asyncio.sleep(0.001)


async def test_a_call_logged_in_a_transaction_is_in_its_commit(path: Path) -> None:
    async with migrated(path) as adapters:
        async with adapters.transaction() as tx:
            tx.ai_call_logger.log_call(ai_call())
            async with tx.transaction() as inner:
                inner.ai_call_logger.log_call(ai_call())
        # Nothing has run on the loop since the commit that could have written them.
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT count(*) FROM ai_calls").fetchone() == (2,)


async def test_two_hundred_logged_calls_outlive_the_close(path: Path) -> None:
    async with open_sqlite(path) as adapters:
        await adapters.migrate()
        for _ in range(200):
            adapters.ai_call_logger.log_call(ai_call())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM ai_calls").fetchone() == (200,)


async def test_more_items_in_a_call_than_a_statement_takes_values(path: Path) -> None:
    async with migrated(path) as adapters:
        persistence = adapters.persistence
        assert len(set(await adapters.job_queue.enqueue_parallel([job(n) for n in range(MANY)]))) == MANY
        await persistence.create_run(named("r"))
        await persistence.append_outbox_events([event("r") for _ in range(MANY)])
        events = await persistence.claim_unpublished_outbox_events(MANY)
        assert [each.sequence for each in events] == list(range(1, MANY + 1))
        await persistence.release_outbox_events([each.id for each in events])
        await persistence.mark_outbox_events_published([each.id for each in events])
        assert await persistence.get_unpublished_outbox_events() == []
        annotations = [
            CreateAnnotationInput(workflow_run_id="r", scope="s", key="k", value=n, idempotency_key=str(n))
            for n in range(MANY)
        ]
        await persistence.append_annotations(annotations)
        await adapters.ai_call_logger.log_batch_results("b", [ai_call(str(n)) for n in range(MANY)])
        stats = await adapters.ai_call_logger.get_stats("")
        assert (stats.total_calls, stats.total_cost) == (MANY, MANY / 10)
        assert await adapters.operations.purge_ai_calls(datetime(2100, 1, 1, tzinfo=UTC), MANY) == MANY


async def test_a_full_database_fails_only_what_does_not_fit(path: Path) -> None:
    async with open_sqlite(path) as adapters:
        await adapters.migrate()
        async with adapters.transaction() as tx:
            ((pages,),) = await tx.connection.execute_fetchall("PRAGMA page_count")
            await tx.connection.execute(f"PRAGMA max_page_count = {pages + 10}")
        outcomes = await asyncio.gather(
            adapters.persistence.create_run(named("first")),
            adapters.persistence.create_run(named("a")),
            adapters.persistence.append_outbox_events([event("large", "x" * 200_000)]),
            adapters.persistence.create_run(named("b")),
            return_exceptions=True,
        )
        assert [isinstance(outcome, BackendUnavailableError) for outcome in outcomes] == [False, False, True, False]
        assert await adapters.persistence.get_unpublished_outbox_events() == []
        assert {run.id for run in (await adapters.operations.list_runs()).items} == {"first", "a", "b"}


async def test_waiting_for_jobs_ends_with_the_commit_that_brings_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "_LOOK_AGAIN", 3600)
    async with migrated(path) as adapters:
        queue = adapters.job_queue
        waiting = asyncio.create_task(queue.wait_for_jobs(timedelta(hours=1)))
        async with adapters.transaction() as tx:
            await tx.job_queue.enqueue_parallel([job(1)])
            await asyncio.sleep(0)
            assert not waiting.done()
        assert await waiting


def in_a_loop_of_its_own(path: str) -> int:
    async def use() -> int:
        async with open_sqlite(path) as adapters:
            await adapters.migrate()
            return len(await adapters.job_queue.enqueue_parallel([job(os.getpid())]))

    return asyncio.run(use())


async def test_two_event_loops_use_two_bundles(path: Path) -> None:
    async with migrated(path) as adapters:
        assert await asyncio.to_thread(in_a_loop_of_its_own, str(path)) == 1
        with pytest.raises(UsageError, match="event loop"):
            await asyncio.to_thread(asyncio.run, adapters.job_queue.dequeue())
        assert await adapters.job_queue.dequeue() is not None


async def test_a_forked_child_is_refused_and_harms_nobody(path: Path) -> None:
    program = f"""
import asyncio, os
from workflow_adapters import UsageError, open_sqlite

async def main():
    async with open_sqlite({str(path)!r}) as adapters:
        await adapters.migrate()
        child = os.fork()
        if child == 0:
            try:
                await adapters.job_queue.dequeue()
            except UsageError as refused:
                os._exit(42 if "fork" in str(refused) else 1)
            os._exit(2)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), await adapters.job_queue.dequeue())

asyncio.run(main())
"""
    command = [sys.executable, "-W", "ignore:This process", "-c", program]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("42 None\n", "")


async def test_another_kind_of_event_loop_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="asyncio"):
            async with open_sqlite():
                pass

    await asyncio.to_thread(trio.run, main)
