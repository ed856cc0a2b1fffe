"""What a connection of ours is opened with, and what is said where that is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from tests.postgres.support import opened, run, script
from workflow_adapters import BackendUnavailableError, ConfigurationError, CreateAICallInput
from workflow_adapters.postgres.bundle import open_postgres

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    "query", ["schema=public", "pgbouncer=true", "connect_timeout=3", "statement_timeout=abc", "options=-c%20odd%3D1"]
)
async def test_a_setting_that_the_server_does_not_take_is_no_outage(dsn: str, query: str) -> None:
    """Drivers of other languages take these in a DSN; no later try would go better."""
    async with opened(f"{dsn}?{query}") as it:
        with pytest.raises(
            ConfigurationError, match=r"no such setting.*(schema|statement_timeout|odd).*open_postgres"
        ) as e:
            await it.database.read(run("SELECT 1"))
    assert isinstance(e.value.__cause__, asyncpg.PostgresError)


@pytest.mark.parametrize("how", ["options=-c%20statement_timeout%3D1234", "options=--statement-timeout%3D1234"])
async def test_what_the_options_of_a_dsn_say_holds(dsn: str, how: str) -> None:
    async with opened(f"{dsn}?{how}") as it:
        assert await it.database.read(run("SHOW statement_timeout")) == [("1234ms",)]
    async with opened(dsn, connect={"server_settings": {"options": "-c statement_timeout=1234"}}) as it:
        assert await it.database.read(run("SHOW statement_timeout")) == [("1234ms",)]


def no_password() -> str:
    raise ValueError("the vault said hush-hush")


async def no_password_later() -> str:
    raise RuntimeError("the vault said hush-hush")


@pytest.mark.parametrize("password", [no_password, no_password_later])
async def test_a_password_function_that_fails_is_an_outage(
    dsn: str, password: Callable[[], str | Awaitable[str]]
) -> None:
    async with opened(dsn, connect={"password": password}) as it:
        with pytest.raises(BackendUnavailableError, match=r"gives the password raised (Value|Runtime)Error") as caught:
            await it.database.read(run("SELECT 1"))
    assert "hush" not in str(caught.value)
    assert "hush" in str(caught.value.__cause__)


async def test_sums_are_exact_whatever_digits_the_role_has(dsn: str) -> None:
    await script(
        dsn, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET extra_float_digits = 0', current_database()); END $$"
    )
    fields: dict[str, Any] = {
        "topic": "t",
        "call_type": "c",
        "model_key": "m",
        "model_id": "m",
        "prompt": "",
        "response": "",
    }
    async with open_postgres(dsn) as adapters:
        for cost in (1 / 3, 0.1 + 0.2):
            adapters.ai_call_logger.log_call(CreateAICallInput(**fields, input_tokens=0, output_tokens=0, cost=cost))
        assert (await adapters.ai_call_logger.get_stats("")).total_cost == 0.6333333333333333
