"""Databases and connections of other kinds than our own, held to the same clauses.

python -m conformance run tests.postgres.profiles:bare
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import asyncpg

from conformance.backend import Env, Fixture, Spec, fixture_of
from conformance.clause import Parameters, Port
from conformance.throwaway import reset_database
from tests.conformance.bundles import options_of, specs_of
from tests.conformance.postgres_backend import SHIFTED_CLOCK, USE_SHIFTED_CLOCK
from tests.postgres.bouncer import running_bouncer
from tests.postgres.left_behind import IN_TRANSACTION, gone
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.adapters import Adapters
from workflow_adapters.ports.ai_call_logger import SupportsListCalls
from workflow_adapters.postgres.bundle import open_postgres

Target: TypeAlias = Callable[[str], AbstractAsyncContextManager[Any]]

REFERENCE: Final = Path(__file__).with_name("reference_schema.sql").read_text()
OWN_TABLES: Final = ("public.wa_migrations", "public.wa_fairness_turns")

WITHOUT_VERSIONS: Final = """
DROP TABLE workflow_definitions;
ALTER TABLE workflow_runs DROP COLUMN "definitionVersion", DROP COLUMN "redriveCount";
"""
WITHOUT_COSTS: Final = """
ALTER TABLE ai_calls DROP COLUMN "estimatedCost", DROP COLUMN "reportedCost", DROP COLUMN "costSource",
    DROP COLUMN "servedBy", DROP COLUMN "cachedInputTokens", DROP COLUMN "reasoningTokens";
ALTER TABLE workflow_steps DROP CONSTRAINT "workflow_steps_stageRecordId_fkey";
"""


def backend(
    *, schema: str | None = None, settings: tuple[str, ...] = (), target: Target | None = None, **options: Any
) -> Callable[[Env], AbstractAsyncContextManager[Fixture[Adapters]]]:
    """A backend on a database with this schema (None: ours) and these settings, reached by way of `target`."""

    @asynccontextmanager
    async def open_backend(env: Env) -> AsyncGenerator[Fixture[Adapters]]:
        assert env.dsn is not None
        # Another connection of the same database: what it does is none of the adapters' doing.
        outside = await asyncpg.connect(env.dsn)
        try:
            if env.instance == "A":
                await _prepare(outside, env.dsn, schema, settings)
            chosen = {**options_of(env), **options}
            async with (target or _itself)(env.dsn) as reached, open_postgres(reached, **chosen) as adapters:
                yield _fixture(adapters, outside, keep=() if schema else OWN_TABLES)
        finally:
            await outside.close(timeout=10)

    return open_backend


async def _prepare(
    outside: asyncpg.Connection[asyncpg.Record], dsn: str, schema: str | None, settings: tuple[str, ...]
) -> None:
    if schema is None:
        async with open_postgres(dsn) as adapters:
            await adapters.migrate()
    elif await outside.fetchval("SELECT to_regclass('public.workflow_runs') IS NULL"):
        await outside.execute(schema)
    await outside.execute(SHIFTED_CLOCK)
    await outside.execute(USE_SHIFTED_CLOCK)
    for setting in settings:
        await outside.execute(
            f"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET {setting}', current_database()); END $$"
        )


def _fixture(
    adapters: Adapters, outside: asyncpg.Connection[asyncpg.Record], keep: tuple[str, ...]
) -> Fixture[Adapters]:
    async def reset() -> None:
        await gone(outside, IN_TRANSACTION)
        await reset_database(outside, keep=keep)

    async def shift_clock(delta: timedelta) -> None:
        await outside.execute("INSERT INTO shifted.passed (span) VALUES ($1)", delta)

    async def store_payload(job_id: str, payload: JsonValue) -> None:
        stored = None if payload is None else json.dumps(payload)
        await outside.execute("UPDATE public.job_queue SET payload = $1::jsonb WHERE id = $2", stored, job_id)

    return Fixture(adapter=adapters, reset=reset, shift_clock=shift_clock, store_payload=store_payload)


@asynccontextmanager
async def _itself(dsn: str) -> AsyncGenerator[str]:
    yield dsn


@asynccontextmanager
async def _through_pgbouncer(dsn: str) -> AsyncGenerator[str]:
    with running_bouncer(dsn) as bouncer:
        yield bouncer.dsn(dsn)


@asynccontextmanager
async def _on_a_callers_pool(dsn: str) -> AsyncGenerator[Any]:
    """Whose owner likes JSON decoded, floats as text, and instants as they come."""

    async def with_codecs(connection: Any) -> None:
        for name in ("jsonb", "json"):
            await connection.set_type_codec(name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
        for name in ("timestamp", "timestamptz", "float8"):
            await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=str, format="text")

    async with asyncpg.create_pool(dsn, min_size=0, max_size=10, init=with_codecs) as pool:
        yield pool


def _parameters(**declared: Any) -> Callable[[Port], Parameters]:
    def of(port: Port) -> Parameters:
        clock = "database" if port is Port.JOB_QUEUE else "caller"
        return Parameters(**{"clock": clock, "durability": "crash", "writers": "many", **declared})

    return of


def _specs(name: str, parameters: dict[str, Any] | None = None, **how: Any) -> list[Spec]:
    return specs_of(name, backend(**how), _parameters(**(parameters or {})), needs_postgres=True)


class _CostsAlone:
    """A logger that stores the cost alone does not promise to give calls back as they were logged."""

    def __init__(self, logger: Any) -> None:
        self.log_call = logger.log_call
        self.log_batch_results = logger.log_batch_results
        self.get_stats = logger.get_stats
        self.is_recorded = logger.is_recorded
        self.flush = logger.flush


def _without_listing(spec: Spec) -> Spec:
    @asynccontextmanager
    async def factory(env: Env) -> AsyncGenerator[Fixture[Any]]:
        async with spec.factory(env) as yielded:
            fixture = fixture_of(yielded)
            yield replace(fixture, adapter=_CostsAlone(fixture.adapter))

    return replace(spec, factory=factory, capabilities={*spec.capabilities} - {SupportsListCalls})


bare: Final = _specs("bare reference", {"job_order": "created_at"}, schema=REFERENCE)
without_versions: Final = _specs(
    "without definition versions",
    {"job_order": "created_at", "definition_versions": "absent"},
    schema=REFERENCE + WITHOUT_VERSIONS,
)
without_costs: Final = [
    _without_listing(spec) if spec.port is Port.AI_CALL_LOGGER else spec
    for spec in _specs(
        "without cost columns", {"job_order": "created_at", "parents": "unchecked"}, schema=REFERENCE + WITHOUT_COSTS
    )
]
pgbouncer: Final = _specs("PgBouncer", target=_through_pgbouncer, pgbouncer=True)
callers_pool: Final = _specs("a caller's pool", target=_on_a_callers_pool)
kolkata: Final = _specs("Asia/Kolkata", settings=("timezone = ''Asia/Kolkata''",))
new_york: Final = _specs("America/New_York", settings=("timezone = ''America/New_York''",))
serializable: Final = _specs(
    "serializable", settings=("default_transaction_isolation = serializable",), target=_on_a_callers_pool
)
