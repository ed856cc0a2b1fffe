"""What connections leave behind on a server: none may be in a transaction when nobody calls."""

from __future__ import annotations

import asyncio
from typing import Final

import asyncpg

IN_TRANSACTION: Final = """
SELECT application_name, state, query
FROM pg_catalog.pg_stat_activity
WHERE datname = pg_catalog.current_database() AND pid <> pg_catalog.pg_backend_pid()
  AND state LIKE 'idle in transaction%'
"""
IN_TRANSACTION_OR_OURS: Final = """
SELECT application_name, state, query
FROM pg_catalog.pg_stat_activity
WHERE datname = pg_catalog.current_database() AND pid <> pg_catalog.pg_backend_pid()
  AND (state LIKE 'idle in transaction%' OR application_name LIKE 'workflow_adapters%')
"""
_LOOKS: Final = 100
_PAUSE: Final = 0.02


async def gone(connection: asyncpg.Connection, left: str) -> None:
    """AssertionError where `left` still finds something after two seconds.

    A backend that was told to end does so a little later.
    """
    found: list[asyncpg.Record] = []
    for _ in range(_LOOKS):
        found = await connection.fetch(left)
        if not found:
            return
        await asyncio.sleep(_PAUSE)
    raise AssertionError(f"left behind: {[tuple(row) for row in found]}")


async def gone_from(dsn: str, left: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await gone(connection, left)
    finally:
        await connection.close(timeout=10)
