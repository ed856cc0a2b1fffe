"""A1: what log_call costs its caller, and how fast the calls are written in the background."""

from __future__ import annotations

import asyncio
import statistics
import time

from benchmarks.postgres_support import Databases, say
from workflow_adapters import BackendBusyError, CreateAICallInput
from workflow_adapters.postgres.bundle import open_postgres
from workflow_adapters.sql.ai_call_logger import SqlAICallLogger

CALLS = 40_000
IN_A_ROW = 200


def a_call(number: int) -> CreateAICallInput:
    return CreateAICallInput(
        topic=f"run-{number % 100}",
        call_type="text",
        model_key="small",
        model_id="vendor/small-1",
        prompt="Summarise the following paragraph in one sentence. " * 4,
        response="It says that the queue is never empty for long. " * 4,
        input_tokens=60,
        output_tokens=20,
        cost=0.0012,
        metadata={"attempt": 1},
    )


async def logging(dsn: str) -> tuple[float, float]:
    """Microseconds of a call at the median, and rows written a second, from the first call to the end of the flush."""
    calls = [a_call(number) for number in range(CALLS)]
    took: list[float] = []
    async with open_postgres(dsn) as adapters:
        logger = adapters.ai_call_logger
        logger.log_call(a_call(0))
        await logger.flush()
        started = time.perf_counter()
        for position, call in enumerate(calls):
            before = time.perf_counter()
            logger.log_call(call)
            took.append(time.perf_counter() - before)
            if position % IN_A_ROW == 0:
                await asyncio.sleep(0)
        await _everything_written(logger)
        rate = CALLS / (time.perf_counter() - started)
    return statistics.median(took) * 1_000_000, rate


async def _everything_written(logger: SqlAICallLogger) -> None:
    while True:
        try:
            return await logger.flush()
        except BackendBusyError:
            continue


async def a1(databases: Databases, repetitions: int) -> None:
    dsn = await databases.filled()
    runs = [await logging(dsn) for _ in range(repetitions)]
    caller, rate = (statistics.median(figures) for figures in zip(*runs, strict=True))
    say("A1", "log_call in the caller, us", caller, "<= 10 us", "")
    say("A1", "rows written in the background, thousands a second", rate / 1000, ">= 20", f"{rate:.0f}/s")
