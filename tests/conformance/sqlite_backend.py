"""The SQLite adapters as the harness takes them: one file for each namespace."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiosqlite

from conformance.backend import Env, Fixture
from tests.conformance.bundles import options_of
from workflow_adapters.json_values import JsonValue
from workflow_adapters.opening import open_sqlite
from workflow_adapters.ports.adapters import Adapters

TABLES = """
SELECT name
FROM sqlite_master
WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'wa_schema_version'
"""


@asynccontextmanager
async def open_on_sqlite(env: Env) -> AsyncGenerator[Fixture[Adapters]]:
    path = env.tmp_path / "conformance.db"
    async with open_sqlite(path, **options_of(env)) as adapters:
        await adapters.migrate()

        async def reset() -> None:
            async with adapters.transaction() as tx:
                await _empty(tx.connection)

        async def store_payload(job_id: str, payload: JsonValue) -> None:
            stored = None if payload is None else json.dumps(payload)
            async with adapters.transaction() as tx:
                await tx.connection.execute("UPDATE job_queue SET payload = ? WHERE id = ?", (stored, job_id))

        yield Fixture(adapter=adapters, reset=reset, store_payload=store_payload)


async def _empty(connection: aiosqlite.Connection) -> None:
    # Children and parents go in any order: the references are looked at when the transaction ends.
    await connection.execute("PRAGMA defer_foreign_keys = ON")
    for (table,) in await connection.execute_fetchall(TABLES):
        await connection.execute(f'DELETE FROM "{table}"')
