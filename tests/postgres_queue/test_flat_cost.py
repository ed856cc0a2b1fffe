"""What a claim costs does not depend on what it is not for. Pages are counted, not time."""

from __future__ import annotations

from collections.abc import Callable

import asyncpg
import pytest

from tests.postgres_queue.support import fill, plan_of
from workflow_adapters.postgres.claims import claim_any, claim_served
from workflow_adapters.postgres.fairness import claim_any_fairly, claim_served_fairly
from workflow_adapters.postgres.fairness_deep import claim_deep_fairly
from workflow_adapters.postgres.lanes import lane
from workflow_adapters.sql.statement import Statement

pytestmark = pytest.mark.asyncio

LANES = ("", lane("w", None), lane("w", "v"), lane("x", None), lane("x", "v"))
CLAIMS: dict[str, Callable[[], Statement]] = {
    "any": lambda: claim_any("me", 1, 0, 24),
    "served": lambda: claim_served("me", 1, 0, 24, LANES),
    "any_fairly": lambda: claim_any_fairly("me", 1, 0, 24, 5),
    "served_fairly": lambda: claim_served_fairly("me", 1, 0, 24, 5, LANES),
}
FLOOD = 40_000
EARLIER = "timestamp '2023-01-01' + n * interval '1 ms'"


async def pages(connection: asyncpg.Connection, statement: Statement) -> int:
    plan = await plan_of(connection, statement, run=True)
    assert plan.claimed == 1
    return plan.pages


@pytest.mark.parametrize("name", CLAIMS)
async def test_the_depth_of_the_queue(own: str, raw: asyncpg.Connection, name: str) -> None:
    await fill(raw, 500, "a", group="'g' || n % 50")
    await raw.execute("VACUUM ANALYZE job_queue")
    shallow = await pages(raw, CLAIMS[name]())
    await fill(raw, FLOOD, "b", group="'g' || n % 50", created="timestamp '2025-01-01' + n * interval '1 ms'")
    await raw.execute("VACUUM ANALYZE job_queue")
    # An index of so many entries has a level more, and each look goes down it.
    assert await pages(raw, CLAIMS[name]()) <= 1.5 * shallow


@pytest.mark.parametrize("name", CLAIMS)
async def test_jobs_that_are_not_due_at_the_head(own: str, raw: asyncpg.Connection, name: str) -> None:
    await fill(raw, 1_000, "a", group="'g' || n % 50")
    await raw.execute("VACUUM ANALYZE job_queue")
    before = await pages(raw, CLAIMS[name]())
    await fill(raw, FLOOD, "b", priority="9", due_at="timestamp '2999-01-01' + n * interval '1 ms'", created=EARLIER)
    await raw.execute("VACUUM ANALYZE job_queue")
    # A window of them is looked at, for there may be some that are due.
    assert await pages(raw, CLAIMS[name]()) <= before + 100


@pytest.mark.parametrize("what", [{"workflow": "'foreign'"}, {"version": "'foreign'"}], ids=["workflow", "version"])
@pytest.mark.parametrize("name", ["served", "served_fairly"])
async def test_jobs_that_are_not_served_at_the_head(
    own: str, raw: asyncpg.Connection, name: str, what: dict[str, str]
) -> None:
    await fill(raw, 1_000, "a", group="'g' || n % 50")
    await raw.execute("VACUUM ANALYZE job_queue")
    before = await pages(raw, CLAIMS[name]())
    await fill(raw, FLOOD, "b", priority="9", created=EARLIER, **what)
    await raw.execute("VACUUM ANALYZE job_queue")
    assert await pages(raw, CLAIMS[name]()) <= 1.5 * before


@pytest.mark.parametrize("lanes", [None, LANES], ids=["any", "served"])
async def test_a_full_group_at_the_head(own: str, raw: asyncpg.Connection, lanes: tuple[str, ...] | None) -> None:
    await fill(raw, 1_000, "a", group="'g' || n % 50")
    await fill(raw, 5, "r", status="RUNNING", group="'full'")
    await raw.execute("VACUUM ANALYZE job_queue")
    before = await pages(raw, claim_deep_fairly("me", 1, 0, 5, lanes))
    await fill(raw, FLOOD, "b", priority="9", group="'full'", created=EARLIER)
    await raw.execute("VACUUM ANALYZE job_queue")
    assert await pages(raw, claim_deep_fairly("me", 1, 0, 5, lanes)) <= 1.5 * before


async def test_many_running_jobs(own: str, raw: asyncpg.Connection) -> None:
    await fill(raw, 1_000, "a", group="'g' || n % 50")
    await raw.execute("VACUUM ANALYZE job_queue")
    before = await pages(raw, claim_any_fairly("me", 1, 0, 24, 1_000_000))
    await fill(raw, 20_000, "r", status="RUNNING", group="'other' || n % 1000")
    await raw.execute("VACUUM ANALYZE job_queue")
    assert await pages(raw, claim_any_fairly("me", 1, 0, 24, 1_000_000)) <= 1.5 * before
