"""The Postgres adapters as the harness takes them: one throwaway database for each namespace, with a clock of its own.

The adapters read the clock by calling clock_timestamp(). In these databases that name finds, before the system's, a
function that adds what time was made to pass, so clauses that need an exact span of the database's clock can be tried.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg

from conformance.backend import Env, Fixture
from conformance.throwaway import reset_database
from tests.conformance.bundles import options_of
from tests.postgres.left_behind import IN_TRANSACTION, gone
from workflow_adapters.json_values import JsonValue
from workflow_adapters.opening import open_postgres
from workflow_adapters.ports.adapters import Adapters

CLOCKS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")
SHIFTED_CLOCK = """
CREATE SCHEMA IF NOT EXISTS shifted;
CREATE TABLE IF NOT EXISTS shifted.passed (span interval NOT NULL);
""" + "".join(
    f"""
CREATE OR REPLACE FUNCTION shifted.{clock}() RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$
    SELECT pg_catalog.{clock}() + coalesce((SELECT sum(span) FROM shifted.passed), interval '0')
$$;
"""
    for clock in CLOCKS
)
USE_SHIFTED_CLOCK = """
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = shifted, pg_catalog, public', current_database());
END
$$
"""


@asynccontextmanager
async def open_on_postgres(env: Env) -> AsyncGenerator[Fixture[Adapters]]:
    assert env.dsn is not None
    # Another connection of the same database: what it does is none of the adapters' doing.
    outside = await asyncpg.connect(env.dsn)
    try:
        if env.instance == "A":
            await outside.execute(SHIFTED_CLOCK)
            await outside.execute(USE_SHIFTED_CLOCK)
        async with open_postgres(env.dsn, **options_of(env)) as adapters:
            await adapters.migrate()
            yield _fixture(adapters, outside)
    finally:
        await outside.close(timeout=10)


def _fixture(adapters: Adapters, outside: asyncpg.Connection[asyncpg.Record]) -> Fixture[Adapters]:
    async def reset() -> None:
        await gone(outside, IN_TRANSACTION)
        await reset_database(outside, keep=["public.wa_migrations", "public.wa_fairness_turns"])

    async def shift_clock(delta: timedelta) -> None:
        await outside.execute("INSERT INTO shifted.passed (span) VALUES ($1)", delta)

    async def store_payload(job_id: str, payload: JsonValue) -> None:
        stored = None if payload is None else json.dumps(payload)
        await outside.execute("UPDATE public.job_queue SET payload = $1::jsonb WHERE id = $2", stored, job_id)

    return Fixture(adapter=adapters, reset=reset, shift_clock=shift_clock, store_payload=store_payload)
