"""migrate() and check_schema(): what they make, what they leave alone, and many of them at once."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from tests.postgres.support import a_run, inside, query, script
from workflow_adapters import BackendBusyError, ConfigurationError, CreateOutboxEventInput, SchemaError, open_adapters
from workflow_adapters.postgres import migrate
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.postgres.schema.migrations import CURRENT_VERSION, MIGRATIONS

pytestmark = pytest.mark.asyncio

REFERENCE = Path(__file__).with_name("reference_schema.sql").read_text()

# Everything of the reference in a schema, as the catalogue has it; what is ours begins with wa_.
COLUMNS = """
SELECT c.relname::text, a.attname::text, a.attnotnull,
       replace(format_type(a.atttypid, a.atttypmod), $1::text || '.', ''),
       replace(pg_get_expr(d.adbin, d.adrelid), $1::text || '.', '')
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = $1::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
  AND NOT starts_with(c.relname::text, 'wa_') AND NOT starts_with(a.attname::text, 'wa_')
ORDER BY 1, 2
"""
INDEXES = """
SELECT indexname::text, replace(indexdef, schemaname || '.', '')
FROM pg_indexes
WHERE schemaname = $1::text AND NOT starts_with(indexname::text, 'wa_')
ORDER BY 1
"""
CONSTRAINTS = """
SELECT conname::text, replace(pg_get_constraintdef(oid), $1::text || '.', '')
FROM pg_constraint
WHERE connamespace = $1::regnamespace AND contype <> 'n' AND NOT starts_with(conname::text, 'wa_')
ORDER BY 1
"""
LABELS = "SELECT enumlabel::text FROM pg_enum JOIN pg_type t ON t.oid = enumtypid WHERE typnamespace = $1::regnamespace"


async def migrated(dsn: str, **options: Any) -> list[str]:
    async with open_postgres(dsn, **options) as adapters:
        return await adapters.migrate()


async def tables(dsn: str, schema: str = "public") -> set[str]:
    rows = await query(dsn, "SELECT tablename::text FROM pg_tables WHERE schemaname = $1::text", schema)
    return {row[0] for row in rows}


async def load_reference(dsn: str, schema: str = "public") -> None:
    await script(dsn, f'CREATE SCHEMA IF NOT EXISTS "{schema}"; SET search_path = "{schema}"; {REFERENCE}')


async def test_a_new_schema_has_the_reference_and_more(empty_dsn: str) -> None:
    await load_reference(empty_dsn, "theirs")
    await migrated(empty_dsn, schema="ours")
    for what in (COLUMNS, INDEXES, CONSTRAINTS, LABELS):
        theirs = [tuple(row) for row in await query(empty_dsn, what, "theirs")]
        ours = [tuple(row) for row in await query(empty_dsn, what, "ours")]
        assert ours == theirs
        assert theirs


async def test_migrating_is_idempotent(empty_dsn: str) -> None:
    async with open_postgres(empty_dsn) as adapters:
        assert await adapters.migrate()
        assert await adapters.migrate() == []
        await adapters.check_schema()
    [[count]] = await query(empty_dsn, "SELECT count(*) FROM wa_migrations")
    assert count == len(MIGRATIONS)


async def test_a_plan_shows_what_would_run_and_runs_nothing(empty_dsn: str) -> None:
    async with open_postgres(empty_dsn) as adapters:
        plan = await adapters.migrate(plan=True)
        assert await tables(empty_dsn) == set()
        assert await adapters.migrate() == plan
        assert await adapters.migrate(plan=True) == []


async def test_a_bundle_opened_before_the_schema_works_after_it(empty_dsn: str) -> None:
    async with open_postgres(empty_dsn) as adapters, open_postgres(empty_dsn) as other:
        for bundle in (adapters, other):
            with pytest.raises(SchemaError, match=r"await adapters\.migrate\(\)"):
                await bundle.persistence.get_run("x")
        await adapters.migrate()
        assert await other.persistence.get_run("x") is None


async def test_a_missing_schema_leaves_the_callers_transaction_usable(empty_dsn: str) -> None:
    connection = await asyncpg.connect(empty_dsn)
    async with open_postgres(empty_dsn) as adapters, connection.transaction(), adapters.bind(connection) as tx:
        with pytest.raises(SchemaError):
            await tx.persistence.create_run(a_run())
        assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


@pytest.mark.parametrize("schema", ["wf", "Work Flow", 'a"b', "größe", "x" * 63])
async def test_any_schema_and_never_the_search_path(empty_dsn: str, schema: str) -> None:
    name = empty_dsn.rpartition("/")[2].partition("?")[0]
    await script(empty_dsn, f"ALTER DATABASE \"{name}\" SET search_path = 'nowhere'")
    async with open_postgres(empty_dsn, schema=schema, status_enum="RunStatus") as adapters:
        await adapters.migrate()
        await adapters.check_schema()
        run = await adapters.persistence.create_run(a_run())
        assert await adapters.persistence.get_run(run.id) == run
        assert await adapters.job_queue.dequeue() is None
    assert "workflow_runs" in await tables(empty_dsn, schema)
    assert await tables(empty_dsn) == set()


async def test_twenty_tasks_at_once(empty_dsn: str) -> None:
    done = await asyncio.gather(*(migrated(empty_dsn) for _ in range(20)))
    assert sum(bool(sql) for sql in done) == 1
    [[count]] = await query(empty_dsn, "SELECT count(*) FROM wa_migrations")
    assert count == len(MIGRATIONS)


async def test_several_processes_at_once(empty_dsn: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from workflow_adapters.postgres.bundle import open_postgres\n"
        "async def main():\n"
        "    async with open_postgres(sys.argv[1]) as adapters:\n"
        "        await adapters.migrate()\n"
        "asyncio.run(main())\n"
    )
    running = [await asyncio.create_subprocess_exec(sys.executable, "-c", program, empty_dsn) for _ in range(4)]
    assert [await process.wait() for process in running] == [0] * 4
    async with open_postgres(empty_dsn) as adapters:
        await adapters.check_schema()


async def test_waiting_for_another_migrator_has_an_end(empty_dsn: str) -> None:
    connection = await asyncpg.connect(empty_dsn)
    await connection.execute(f"SELECT pg_advisory_lock({migrate.lock_key('public')})")
    async with open_postgres(empty_dsn, migrate_timeout=timedelta(milliseconds=50)) as adapters:
        with pytest.raises(BackendBusyError, match="still migrating"):
            await adapters.migrate()
    await connection.close()
    assert await migrated(empty_dsn)


async def test_one_that_is_killed_half_way_leaves_nothing(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    async def die(self: migrate.Migrator, step: Any) -> None:
        connection = self._connection
        async with connection.transaction(isolation="read_committed"):
            for sql in step.statements[: len(step.statements) // 2]:
                taken.append(sql)
                await connection.execute(sql)
            raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(migrate.Migrator, "_take", die)
        with pytest.raises(asyncio.CancelledError):
            await migrated(empty_dsn)
    assert len(taken) > 5
    assert await tables(empty_dsn) == set()
    assert await migrated(empty_dsn)


async def test_an_older_schema_of_ours_is_brought_forward_with_its_rows(empty_dsn: str) -> None:
    """Version 1 alone, as an early release would have left it, with a row in it."""
    async with open_postgres(empty_dsn) as adapters:
        await adapters.migrate()
        run = await adapters.persistence.create_run(a_run())
    await script(empty_dsn, await undoing(empty_dsn))
    async with open_postgres(empty_dsn) as adapters:
        with pytest.raises(SchemaError, match=f"version 1 of {CURRENT_VERSION}"):
            await adapters.persistence.get_run(run.id)
        with pytest.raises(SchemaError, match=f"version 1 of {CURRENT_VERSION}"):
            await adapters.check_schema()
        ran = await adapters.migrate()
        assert any("CREATE INDEX CONCURRENTLY" in sql for sql in ran)
        await adapters.check_schema()
        assert await adapters.persistence.get_run(run.id) == run


async def test_a_newer_schema_is_refused(dsn: str) -> None:
    async with open_postgres(dsn) as running:
        assert await running.persistence.get_run("x") is None
        await script(dsn, f"INSERT INTO wa_migrations VALUES ({CURRENT_VERSION + 1}, 'later', now())")
        async with open_postgres(dsn) as adapters:
            for call in (adapters.migrate, adapters.check_schema, lambda: adapters.persistence.get_run("x")):
                with pytest.raises(SchemaError, match="newer"):
                    await call()
            with pytest.raises(SchemaError, match="newer"):
                await inside(adapters.transaction(), lambda tx: tx.persistence.get_run("x"))
        # Rolling deployments: what is already running goes on.
        assert await running.persistence.get_run("x") is None


async def test_a_missing_index_and_an_invalid_one_are_built(dsn: str) -> None:
    async with open_postgres(dsn) as adapters:
        lost, broken = await own_indexes(dsn)
        await script(dsn, f'DROP INDEX "{lost}"')
        await script(dsn, f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '\"{broken}\"'::regclass")
        with pytest.raises(SchemaError, match=r"migrate\(\)") as caught:
            await adapters.check_schema()
        assert caught.value.missing == (f"index {lost}", f"index {broken} (left invalid by an interrupted build)")
        ran = await adapters.migrate()
        assert [sql.split(" ON ")[0].replace('"', "") for sql in ran] == [
            f"CREATE INDEX CONCURRENTLY {lost}",
            f"DROP INDEX CONCURRENTLY public.{broken}",
            f"CREATE INDEX CONCURRENTLY {broken}",
        ]
        await adapters.check_schema()


async def test_a_long_transaction_holds_up_nobody_but_the_builder(dsn: str) -> None:
    """Two migrators, of which one builds an index: neither blocks in a lock that the other's build waits for."""
    lost, _ = await own_indexes(dsn)
    await script(dsn, f'DROP INDEX "{lost}"')
    reader = await asyncpg.connect(dsn)
    async with reader.transaction():
        await reader.fetch("SELECT 1 FROM job_queue")
        both = [asyncio.create_task(migrated(dsn)) for _ in range(2)]
        async with open_postgres(dsn) as adapters:
            assert await adapters.persistence.get_run("x") is None
    done = await asyncio.gather(*both)
    assert sorted(len(sql) for sql in done) == [0, 1]
    await reader.close()


async def test_a_schema_of_the_typescript_engine_is_used_without_ddl(empty_dsn: str) -> None:
    await load_reference(empty_dsn)
    before = await tables(empty_dsn)
    async with open_postgres(empty_dsn) as adapters:
        assert await adapters.migrate() == []
        assert await adapters.migrate(plan=True) == []
        await adapters.check_schema()
        run = await adapters.persistence.create_run(a_run())
        assert await adapters.persistence.get_run(run.id) == run
        assert adapters.persistence.supports_definition_versioning()
    assert await tables(empty_dsn) == before


@pytest.mark.parametrize("somebody_tells", [True, False])
async def test_a_schema_that_was_made_anew_is_looked_at_anew(dsn: str, somebody_tells: bool) -> None:
    event = CreateOutboxEventInput(
        workflow_run_id="r", event_type="e", payload={}, causation_id="c", occurred_at=datetime.now(UTC)
    )
    async with open_postgres(dsn) as adapters:
        # By a function of ours, which the other schema does not have.
        await adapters.persistence.append_outbox_events([event])
        await script(dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await load_reference(dsn)
        if somebody_tells:
            assert await adapters.migrate() == []
        else:
            with pytest.raises(SchemaError):
                await adapters.persistence.append_outbox_events([event])
        await adapters.persistence.append_outbox_events([event])


async def test_older_databases_lack_capabilities_and_are_complete(empty_dsn: str) -> None:
    await load_reference(empty_dsn)
    await script(
        empty_dsn,
        """
        DROP TABLE workflow_definitions;
        ALTER TABLE workflow_runs DROP COLUMN "definitionVersion", DROP COLUMN "redriveCount";
        ALTER TABLE ai_calls DROP COLUMN "estimatedCost", DROP COLUMN "reportedCost", DROP COLUMN "costSource",
            DROP COLUMN "servedBy", DROP COLUMN "cachedInputTokens", DROP COLUMN "reasoningTokens";
        ALTER TABLE workflow_steps DROP CONSTRAINT "workflow_steps_stageRecordId_fkey"
        """,
    )
    async with open_postgres(empty_dsn) as adapters:
        await adapters.check_schema()
        assert await adapters.persistence.ensure_definition_versioning_detected() is False
        run = await adapters.persistence.create_run(a_run())
        assert run.definition_version is None
        assert run.redrive_count == 0


async def test_what_is_missing_is_all_named_with_the_mend(empty_dsn: str) -> None:
    await load_reference(empty_dsn)
    await script(
        empty_dsn,
        """
        DROP TABLE idempotency_keys;
        ALTER TABLE workflow_runs DROP COLUMN "redriveCount";
        ALTER TABLE job_queue DROP COLUMN "lastError";
        DROP INDEX "outbox_events_workflowRunId_sequence_key";
        DROP INDEX "ai_calls_topic_idx";
        ALTER TYPE "Status" RENAME VALUE 'SKIPPED' TO 'ODD'
        """,
    )
    async with open_postgres(empty_dsn) as adapters:
        with pytest.raises(SchemaError, match="tooling that made it") as caught:
            await adapters.check_schema()
        assert set(caught.value.missing) == {
            "table idempotency_keys",
            "column workflow_runs.redriveCount",
            "column job_queue.lastError",
            "index outbox_events_workflowRunId_sequence_key",
            "index ai_calls_topic_idx",
            "enum value SKIPPED",
        }
        with pytest.raises(SchemaError):
            await adapters.migrate()
        with pytest.raises(SchemaError, match="idempotency_keys"):
            await adapters.persistence.get_run("x")


async def test_an_index_may_have_another_name(empty_dsn: str) -> None:
    await load_reference(empty_dsn)
    await script(empty_dsn, 'ALTER INDEX "ai_calls_batch_request_unique" RENAME TO "ai_calls_batchId_requestId_key"')
    async with open_postgres(empty_dsn) as adapters:
        await adapters.check_schema()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_can_not_hold_every_text_is_refused(dsn: str, encoding: str) -> None:
    name = f"odd_{uuid4().hex[:12]}"
    odd = urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
    await script(dsn, f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    try:
        async with open_postgres(odd) as adapters:
            if encoding == "SQL_ASCII":
                await adapters.migrate()
                await adapters.check_schema()
                assert (await adapters.persistence.create_run(a_run("\u00e9\u20ac"))).id == "\u00e9\u20ac"
                return
            for call in (adapters.migrate, adapters.check_schema, adapters.operations.queue_stats):
                with pytest.raises(SchemaError, match="encoding UTF8, which the database has as LATIN1"):
                    await call()
        assert await tables(odd) == set()
    finally:
        await script(dsn, f"DROP DATABASE {name} WITH (FORCE)")


async def test_an_empty_database_is_told_to_migrate(empty_dsn: str) -> None:
    async with open_postgres(empty_dsn) as adapters:
        with pytest.raises(SchemaError, match="migrate") as caught:
            await adapters.check_schema()
        assert "table workflow_runs" in caught.value.missing
        assert "enum value PENDING" in caught.value.missing


async def test_our_own_parts_are_checked_too(dsn: str) -> None:
    [[function]] = await query(dsn, "SELECT proname::text FROM pg_proc WHERE proname LIKE 'wa\\_%' LIMIT 1")
    await script(dsn, f'DROP FUNCTION "{function}" CASCADE')
    async with open_postgres(dsn) as adapters:
        with pytest.raises(SchemaError, match=f"function {function}"):
            await adapters.check_schema()


@pytest.mark.parametrize(
    "options",
    [
        {"schema": ""},
        {"schema": "x" * 64},
        {"schema": "a\0b"},
        {"status_enum": "No Plain Name"},
        {"status_enum": ""},
        {"max_connections": 0},
        {"max_connections": "10"},
        {"acquire_timeout": timedelta(0)},
        {"statement_timeout": 5},
        {"statement_timeout": timedelta(microseconds=999)},
        {"statement_timeout": timedelta(days=25)},
        {"idle_in_transaction_timeout": timedelta.max},
        {"schema": "pg_mine"},
        {"schema": "a$function$b"},
        {"pgbouncer": "no"},
        {"wake_ups": None},
        {"application_name": "a\0b"},
        {"application_name": "\ud800"},
        {"application_name": 5},
        {"connect": None},
        {"connect": {"dsn": "postgresql://"}},
        {"connect": {"passwrod": "x"}},
        {"connect": {"server_settings": "x"}},
        {"connect": {"server_settings": {"x": 1}}},
        {"connect": {"server_settings": {"x": "a\0b"}}},
        {"nonsense": 1},
    ],
)
async def test_options_that_make_no_sense(dsn: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        async with open_adapters(dsn, **options):
            pass


async def own_indexes(dsn: str) -> list[str]:
    names = [index.name for migration in MIGRATIONS[1:] for index in migration.indexes][:2]
    assert len(names) == 2
    return list(names)


async def undoing(dsn: str) -> str:
    """What takes a schema back to the reference and the note of it."""
    parts = await query(
        dsn,
        """
        SELECT format('DROP TABLE %I CASCADE', relname) FROM pg_class
        WHERE starts_with(relname::text, 'wa_') AND relkind = 'r' AND relname <> 'wa_migrations'
        UNION ALL
        SELECT format('DROP INDEX %I', relname) FROM pg_class WHERE starts_with(relname::text, 'wa_') AND relkind = 'i'
          AND relname NOT LIKE '%_pkey'
        UNION ALL
        SELECT format('ALTER TABLE %s DROP COLUMN %I', attrelid::regclass, attname) FROM pg_attribute
        WHERE starts_with(attname::text, 'wa_') AND attnum > 0 AND NOT attisdropped
          AND attrelid::regclass::text IN ('job_queue', 'outbox_events', 'workflow_runs', 'ai_calls')
        UNION ALL
        SELECT format('DROP FUNCTION %s', oid::regprocedure) FROM pg_proc WHERE starts_with(proname::text, 'wa_')
        """,
    )
    return ";\n".join([*(row[0] for row in parts), "DELETE FROM wa_migrations WHERE version > 1"])
