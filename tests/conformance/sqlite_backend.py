"""The SQLite adapters as the harness takes them: one file for each namespace."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

from anyio import to_thread

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
        outside = await to_thread.run_sync(_connected, path)

        async def reset() -> None:
            await to_thread.run_sync(_empty, outside)

        async def store_payload(job_id: str, payload: JsonValue) -> None:
            await to_thread.run_sync(partial(_store_payload, path, job_id, payload))

        with closing(outside):
            yield Fixture(adapter=adapters, reset=reset, store_payload=store_payload)


def _connected(path: Path) -> sqlite3.Connection:
    # Kept open: to read the schema anew for each clause takes longer than to empty the tables.
    outside = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    # Nothing of value is written by it, so nothing has to reach the disk.
    outside.execute("PRAGMA synchronous = OFF")
    return outside


def _empty(outside: sqlite3.Connection) -> None:
    outside.execute("BEGIN IMMEDIATE")
    try:
        for (table,) in outside.execute(TABLES).fetchall():
            outside.execute(f'DELETE FROM "{table}"')
    except BaseException:
        outside.execute("ROLLBACK")
        raise
    outside.execute("COMMIT")


def _store_payload(path: Path, job_id: str, payload: JsonValue) -> None:
    stored = None if payload is None else json.dumps(payload)
    with closing(sqlite3.connect(path, isolation_level=None)) as outside:
        outside.execute("UPDATE job_queue SET payload = ? WHERE id = ?", (stored, job_id))
