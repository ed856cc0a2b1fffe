from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sql.sqlite_database import PlainDatabase, connect
from tests.worked_examples.examples import START
from workflow_adapters import CreateAICallInput, JobQueueFairness, ManualClock
from workflow_adapters.ai_call_records import LoggedCall
from workflow_adapters.queue_settings import QueueSettings
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.sql.ai_call_logger import SqlAICallLogger, insert_ai_calls
from workflow_adapters.sql.operations import SqlOperations
from workflow_adapters.sql.outbox_rotation import OutboxRotation
from workflow_adapters.sql.step_ledger import SqlStepLedger
from workflow_adapters.sqlite.job_queue import SqliteJobQueue
from workflow_adapters.sqlite.job_signal import JobSignal
from workflow_adapters.sqlite.persistence import SqliteWorkflowPersistence


class WaitingCalls:
    """log_call's buffer without a writer task: it is written when somebody flushes."""

    def __init__(self, database: PlainDatabase) -> None:
        self._database = database
        self._waiting: list[AICallRecord] = []

    def log(self, call: CreateAICallInput) -> None:
        self._waiting.append(LoggedCall.of(call, self._database.now()).row)

    async def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        await insert_ai_calls(self._database, waiting)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def database(clock: ManualClock) -> Iterator[PlainDatabase]:
    with closing(connect()) as connection:
        yield PlainDatabase(connection, clock)


@pytest.fixture
def ports_on(clock: ManualClock) -> Callable[..., Any]:
    """The ports over a database, by the names that they have on a bundle."""

    def build(database: PlainDatabase, fairness: JobQueueFairness | None = None) -> Any:
        settings, signal = QueueSettings(fairness=fairness), JobSignal()
        return SimpleNamespace(
            persistence=SqliteWorkflowPersistence(database, OutboxRotation()),
            job_queue=SqliteJobQueue(database, settings, signal),
            step_ledger=SqlStepLedger(database),
            ai_call_logger=SqlAICallLogger(database, WaitingCalls(database)),
            operations=SqlOperations(database, signal.changed),
        )

    return build
