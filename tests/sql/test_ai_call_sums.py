"""Exact sums of costs, by SQLite's aggregate of ours and page by page without it."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.sql.sqlite_database import PlainDatabase, connect
from tests.worked_examples.examples import START, call
from workflow_adapters import ManualClock
from workflow_adapters.exact_decimals import total_of

pytestmark = pytest.mark.asyncio

COSTS = [0.1, 0.2, 1e300, 3.0, -1e300, 5e-324, 1e-9, 123456.789]


@pytest.mark.parametrize("own_functions", [True, False], ids=["aggregate", "pages"])
async def test_sums_do_not_depend_on_the_order(ports_on: Callable[..., Any], *, own_functions: bool) -> None:
    answers: set[float] = set()
    for seed in range(3):
        database = PlainDatabase(connect(), ManualClock(START), own_functions=own_functions)
        logger = ports_on(database).ai_call_logger
        for cost in Random(seed).sample(COSTS, len(COSTS)):
            logger.log_call(call("a.b", cost=cost, model_key="m"))
        stats = await logger.get_stats("a.")
        answers.add(stats.total_cost)
        database.connection.close()
    assert answers == {123460.089000001}


async def test_pages_and_aggregate_agree(ports_on: Callable[..., Any], database: PlainDatabase) -> None:
    pick = Random(1)
    logger = ports_on(database).ai_call_logger
    for _ in range(2500):
        logger.log_call(call(pick.choice(["a", "ab", "b"]), cost=pick.random(), model_key=pick.choice("xyz")))
    in_pages = ports_on(PlainDatabase(database.connection, ManualClock(START), own_functions=False)).ai_call_logger
    for prefix in ("", "a", "ab", "nothing"):
        assert await logger.get_stats(prefix) == await in_pages.get_stats(prefix)
    assert (await logger.get_stats("")).total_calls == 2500


async def test_a_sum_is_rounded_once() -> None:
    assert total_of(["0.1", "0.2"]) == 0.3
    assert total_of([]) == 0.0
