"""A read of the AI calls that is refused where it was made costs none of the logged calls, on every backend."""

from __future__ import annotations

import asyncio

import pytest

from tests.worked_examples.examples import call
from workflow_adapters import UsageError, open_adapters


@pytest.mark.parametrize("backend", ["memory", "sqlite", "postgres"])
@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.asyncio
async def test_a_refused_read_inside_an_inner_block_loses_no_calls(
    request: pytest.FixtureRequest, backend: str, commits: bool
) -> None:
    url = f"{backend}://"
    if backend == "postgres":
        url = await asyncio.to_thread(request.getfixturevalue, "postgres_dsn")
    async with open_adapters(url) as adapters:
        await adapters.migrate()

        async def work() -> None:
            async with adapters.transaction() as tx:
                for n in range(3):
                    tx.ai_call_logger.log_call(call(f"topic-{n}"))
                async with tx.transaction():
                    with pytest.raises(UsageError):
                        await tx.ai_call_logger.get_stats("")
                if not commits:
                    raise ZeroDivisionError

        if commits:
            await work()
        else:
            with pytest.raises(ZeroDivisionError):
                await work()
        assert (await adapters.ai_call_logger.get_stats("topic-")).total_calls == 3
