"""Every adapter is held to the worked examples, and every method has at least three."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path

import pytest

import tests.worked_examples  # registers the examples
from tests.worked_examples.examples import EXAMPLES, START, Example, World
from workflow_adapters import ManualClock, open_adapters
from workflow_adapters.ports import adapters, ai_call_logger, job_queue, operations, outbox, step_ledger
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence

assert tests.worked_examples

PORTS = (
    WorkflowPersistence,
    outbox.SupportsOutboxLease,
    job_queue.JobQueue,
    job_queue.SupportsDefer,
    job_queue.SupportsAbsoluteLease,
    job_queue.SupportsWorkerAdoption,
    job_queue.SupportsFairness,
    job_queue.SupportsWaiting,
    job_queue.SupportsDequeueMany,
    job_queue.SupportsCompleteMany,
    job_queue.SupportsHeartbeat,
    step_ledger.StepLedger,
    step_ledger.SupportsClearExcept,
    ai_call_logger.AICallLogger,
    ai_call_logger.SupportsListCalls,
    ai_call_logger.SupportsFlush,
    operations.Operations,
)
URLS = ("memory://", "sqlite:///{path}/examples.db")
AT_LEAST = 3


def name_of(example: Example) -> str:
    return f"{example.method}-{example.body.__name__}"


async def hold(example: Example, url: str) -> None:
    clock = ManualClock(START)
    async with open_adapters(url, clock=clock, fairness=example.fairness) as opened:
        await opened.migrate()
        observed, expected = await example.body(World(adapters=opened, clock=clock))
    assert observed == expected, example.sentence


@pytest.mark.parametrize("url", URLS, ids=lambda url: url.split(":")[0])
@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
@pytest.mark.asyncio
async def test_example(example: Example, url: str, tmp_path: Path) -> None:
    await hold(example, url.format(path=tmp_path))


# The others move the queue's clock, which is the database's own on Postgres.
@pytest.mark.parametrize("example", [example for example in EXAMPLES if not example.clock], ids=name_of)
@pytest.mark.asyncio
async def test_example_on_postgres(example: Example, postgres_dsn: str) -> None:
    await hold(example, postgres_dsn)


def test_every_method_has_three_examples() -> None:
    examples = Counter(example.method for example in EXAMPLES)
    methods = {
        name
        for port in PORTS
        for name, member in inspect.getmembers(port)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }
    methods |= {"Adapters.transaction", "migrate", "check_schema", "enqueue"}
    assert isinstance(adapters.Adapters, type)
    assert {name: examples[name] for name in methods if examples[name] < AT_LEAST} == {}
    assert set(examples) == methods
