"""Migrations, and what is said about a database that they have not made."""

import asyncio
import multiprocessing
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from workflow_adapters.clock import SystemClock
from workflow_adapters.errors import SchemaError
from workflow_adapters.sql.statement import Operation
from workflow_adapters.sql.tables import MAPPINGS
from workflow_adapters.sqlite.check import check_schema
from workflow_adapters.sqlite.connection import Target
from workflow_adapters.sqlite.database import Engine
from workflow_adapters.sqlite.pool import PooledDatabase
from workflow_adapters.sqlite.schema import MIGRATIONS, NEWEST
from workflow_adapters.sqlite.schema.migration import migrate

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def untouched(path: Path) -> AsyncIterator[PooledDatabase]:
    database = PooledDatabase(Engine(SystemClock()), Target(path=str(path), synchronous="OFF"), readers=1)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def migrated(database: PooledDatabase) -> None:
    await database.write(lambda: migrate(MIGRATIONS, database.now()))


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(sql).fetchall()


async def test_it_makes_what_the_records_need(path: Path) -> None:
    async with untouched(path) as database:
        await migrated(database)
        await database.read(check_schema)
    for mapping in MAPPINGS.values():
        columns = {name for _, name, *_ in query(path, f"PRAGMA table_info({mapping.table})")}
        assert {column.name for column in mapping.columns} <= columns, mapping.table


async def test_every_table_is_strict(path: Path) -> None:
    async with untouched(path) as database:
        await migrated(database)
    tables = query(path, "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite%'")
    assert len(tables) == 12
    assert [name for name, strict in tables if not strict] == []


async def test_opening_runs_no_ddl(path: Path) -> None:
    async with untouched(path):
        pass
    assert query(path, "SELECT name FROM sqlite_schema") == []


async def test_it_is_idempotent(path: Path) -> None:
    async with untouched(path) as database:
        await migrated(database)
        before = query(path, "SELECT * FROM sqlite_schema ORDER BY name")
        await migrated(database)
        assert query(path, "SELECT * FROM sqlite_schema ORDER BY name") == before
        assert query(path, "SELECT version FROM wa_schema_version") == [(NEWEST,)]


async def test_twenty_tasks_at_once(path: Path) -> None:
    async with untouched(path) as database:
        await asyncio.gather(*(migrated(database) for _ in range(20)))
    assert query(path, "SELECT version FROM wa_schema_version") == [(NEWEST,)]


async def test_twenty_bundles_at_once(path: Path) -> None:
    async def one() -> None:
        async with untouched(path) as database:
            await migrated(database)

    await asyncio.gather(*(one() for _ in range(20)))
    assert query(path, "SELECT version FROM wa_schema_version") == [(NEWEST,)]


def migrate_in_process(path: str, start: int) -> None:
    async def main() -> None:
        async with untouched(Path(path)) as database:
            await asyncio.gather(*(migrated(database) for _ in range(start)))

    asyncio.run(main())


async def test_four_processes_at_once(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=migrate_in_process, args=(str(path), 5)) for _ in range(4)]
    for process in processes:
        process.start()
    await asyncio.gather(*(asyncio.to_thread(process.join, 60) for process in processes))
    assert [process.exitcode for process in processes] == [0] * 4
    assert query(path, "SELECT version FROM wa_schema_version") == [(NEWEST,)]
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_migration_that_breaks_off_leaves_nothing(path: Path) -> None:
    def broken() -> Operation[None]:
        steps = migrate(MIGRATIONS, SystemClock().now())
        statement = next(steps)
        for _ in range(10):
            statement = steps.send((yield statement))
        raise ZeroDivisionError

    async with untouched(path) as database:
        with pytest.raises(ZeroDivisionError):
            await database.write(broken)
        assert query(path, "SELECT name FROM sqlite_schema") == []
        await migrated(database)


async def test_a_newer_schema_is_refused(path: Path) -> None:
    async with untouched(path) as database:
        await migrated(database)
        query(path, f"INSERT INTO wa_schema_version VALUES ({NEWEST + 1}, 0)")
        for refused in (migrated(database), database.read(check_schema)):
            with pytest.raises(SchemaError, match=f"version {NEWEST + 1} .* upgrade workflow-adapters"):
                await refused
    with pytest.raises(SchemaError, match=f"version {NEWEST + 1} .* upgrade workflow-adapters"):
        async with untouched(path):
            pass


async def test_a_table_of_somebody_elses_is_not_taken_over(path: Path) -> None:
    query(path, "CREATE TABLE job_queue (mine)")
    async with untouched(path) as database:
        with pytest.raises(SchemaError, match=r"table job_queue is there already .* a database file of their own"):
            await migrated(database)
    assert query(path, "SELECT name FROM sqlite_schema") == [("job_queue",)]


async def test_an_empty_database_says_migrate(path: Path) -> None:
    async with untouched(path) as database:
        for refused in (database.read(check_schema), database.facts()):
            with pytest.raises(SchemaError, match=r"await adapters\.migrate\(\)") as lacking:
                await refused
            assert lacking.value.missing == tuple(f"table {name}" for name in sorted(MIGRATIONS[0].tables))


@pytest.mark.parametrize(
    ("damage", "missing"),
    [
        ("DROP TABLE workflow_steps", ["table workflow_steps"]),
        ("ALTER TABLE ai_calls DROP COLUMN servedBy", ["column ai_calls.servedBy"]),
        ("DROP INDEX wa_runs_pending", ["index wa_runs_pending"]),
    ],
)
async def test_what_is_missing_is_named(path: Path, damage: str, missing: list[str]) -> None:
    async with untouched(path) as database:
        await migrated(database)
        query(path, damage)
        with pytest.raises(SchemaError) as lacking:
            await database.read(check_schema)
        assert list(lacking.value.missing) == missing


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("workflow_runs", "status", "'ODD'"),
        ("workflow_runs", "input", "'{nonsense'"),
        ("workflow_runs", "createdAt", "'2026-01-01'"),
        ("workflow_runs", "priority", "'high'"),
    ],
)
async def test_the_tables_check_what_is_stored(path: Path, table: str, column: str, value: str) -> None:
    async with untouched(path) as database:
        await migrated(database)
    insert = """
        INSERT INTO workflow_runs (id, "createdAt", "updatedAt", "workflowId", "workflowName", "workflowType", input)
        VALUES ('r', 0, 0, 'w', 'n', 't', '{}')
    """
    query(path, insert)
    with pytest.raises(sqlite3.IntegrityError):
        query(path, f'UPDATE {table} SET "{column}" = {value}')


async def test_children_go_with_their_parents_and_references_are_cleared(path: Path) -> None:
    async with untouched(path) as database:
        await migrated(database)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(
            """
            INSERT INTO workflow_runs (
                id, "createdAt", "updatedAt", "workflowId", "workflowName", "workflowType", input
            )
            VALUES ('r', 0, 0, 'w', 'n', 't', '{}');
            INSERT INTO workflow_stages (
                id, "createdAt", "updatedAt", "workflowRunId", "stageId", "stageName", "stageNumber", "executionGroup"
            )
            VALUES ('s', 0, 0, 'r', 's', 's', 1, 1);
            INSERT INTO workflow_steps (id, "stageRecordId", "stepId", seq, kind, status, "createdAt", "updatedAt")
            VALUES ('p', 's', 'p', 1, 'run', 'running', 0, 0);
            INSERT INTO workflow_logs (id, "createdAt", "workflowRunId", "workflowStageId", level, message)
            VALUES ('l', 0, 'r', 's', 'INFO', '');
            INSERT INTO workflow_artifacts (
                id, "createdAt", "updatedAt", "workflowRunId", "workflowStageId", key, type, data, size
            )
            VALUES ('a', 0, 0, 'r', 's', 'k', 'ARTIFACT', '1', 1);
            INSERT INTO workflow_annotations (
                id, "createdAt", "workflowRunId", "workflowStageRecordId", scope, key, value
            )
            VALUES ('n', 0, 'r', 's', '', 'k', '1');
            DELETE FROM workflow_stages;
            """
        )
        for table, left in [
            ("workflow_steps", []),
            ("workflow_logs", []),
            ("workflow_artifacts", [(None,)]),
            ("workflow_annotations", [(None,)]),
        ]:
            reference = "workflowStageRecordId" if table == "workflow_annotations" else "workflowStageId"
            column = "id" if table == "workflow_steps" else f'"{reference}"'
            assert connection.execute(f"SELECT {column} FROM {table}").fetchall() == left, table
        connection.execute("DELETE FROM workflow_runs")
        for table in MIGRATIONS[0].tables:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)], table
