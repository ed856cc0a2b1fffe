"""The statement that a call would run first, without a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast

from workflow_adapters.postgres.database import PostgresDatabase
from workflow_adapters.postgres.detect import PostgresFacts
from workflow_adapters.postgres.job_port import PostgresQueueSettings
from workflow_adapters.postgres.job_queue import PostgresJobQueue
from workflow_adapters.postgres.workflow_persistence import PostgresWorkflowPersistence
from workflow_adapters.sql.outbox_rotation import OutboxRotation
from workflow_adapters.sql.statement import Statement


class Recorded(Exception):  # noqa: N818 - it carries a statement out of the adapter that was about to run it
    pass


class Recorder:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def facts(self) -> PostgresFacts:
        return PostgresFacts()

    def watch_plan(self, text: str) -> None:
        pass

    async def write(self, operation: Callable[[], Any], *, single: bool = False) -> Any:
        raise Recorded(next(operation()))

    read = write


def statement_of(call: Callable[[PostgresJobQueue], Awaitable[object]]) -> Statement:
    return _recorded(call(PostgresJobQueue(cast("PostgresDatabase", Recorder()), PostgresQueueSettings())))


def outbox_statement_of(call: Callable[[PostgresWorkflowPersistence], Awaitable[object]]) -> Statement:
    return _recorded(call(PostgresWorkflowPersistence(cast("PostgresDatabase", Recorder()), OutboxRotation())))


def _recorded(called: Awaitable[object]) -> Statement:
    try:
        called.__await__().send(None)
    except Recorded as carried:
        return carried.args[0]
    raise AssertionError("no statement was run")
