"""Plays a script on an adapter and writes down its answers in a form that two adapters can be compared by."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, cast

from tests.differential.script import Advance, Answers, Call
from workflow_adapters import (
    Acquired,
    Adapters,
    DequeueResult,
    ManualClock,
    OutboxLease,
    OutboxRecord,
    WorkflowAdapterError,
)
from workflow_adapters import WorkflowStageRecord as Stage

DATABASE_STAMPS = frozenset(
    {
        "created_at",
        "updated_at",
        "locked_at",
        "started_at",
        "completed_at",
        "next_poll_at",
        "oldest_locked_at",
        "oldest_due_at",
    }
)
"""Fields of jobs that come from the database's clock where it has one."""


ADAPTERS_OWN = ("token", "expires_at", "next")


class Player:
    """`database_clock` compares the stamps of jobs by presence, not by value."""

    def __init__(self, adapters: Adapters, clock: ManualClock, *, database_clock: bool = False) -> None:
        self._adapters = adapters
        self._clock = clock
        self._database_clock = database_clock
        self._answers = Answers()
        self._names: dict[str, str] = {}

    async def play(self, step: Call | Advance) -> Any:
        if isinstance(step, Advance):
            self._clock.advance(step.span)
            return None
        args = step.args(self._answers)
        if args is None:
            return "left out"
        try:
            answer = getattr(getattr(self._adapters, step.port), step.method)(*args)
            if inspect.isawaitable(answer):
                answer = await answer
        except WorkflowAdapterError as error:
            fields = {name: self._plain(value, step) for name, value in vars(error).items()}
            return type(error).__name__, fields
        self._remember(answer)
        return self._plain(answer, step)

    def _remember(self, answer: Any) -> None:
        for item in answer if isinstance(answer, list) else [answer]:
            match item:
                case Stage():
                    if item.id not in self._answers.stages:
                        self._answers.stages.append(item.id)
                case DequeueResult():
                    self._answers.claims.append(item)
                case OutboxRecord():
                    self._answers.events.append(item.id)
                case OutboxLease():
                    self._answers.leases.append(item)
                case Acquired():
                    self._answers.fences.append(item.fence)
                case _:
                    pass

    def _plain(self, value: Any, step: Call, field: str = "") -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [part.name for part in dataclasses.fields(value)]
            return type(value).__name__, {name: self._plain(getattr(value, name), step, name) for name in names}
        if field in ADAPTERS_OWN and value is not None:
            return "present"  # tokens and cursors are an adapter's own
        if isinstance(value, datetime):
            jobs = step.port == "job_queue" or step.method in ("list_jobs", "get_job", "queue_stats")
            return "an instant" if self._database_clock and jobs and field in DATABASE_STAMPS else value.isoformat()
        if value is None or isinstance(value, Enum | bool | int | float):
            return repr(value)
        if isinstance(value, str):
            return self._name(value)
        return self._collection(cast(Any, value), step)

    def _collection(self, value: Mapping[Any, Any] | Sequence[Any], step: Call) -> Any:
        if isinstance(value, Mapping):
            return {str(key): self._plain(item, step) for key, item in sorted(value.items(), key=lambda kv: str(kv[0]))}
        return [self._plain(item, step) for item in value]

    def _name(self, text: str) -> str:
        # Generated ids differ between adapters: each is called by the order in which it was first seen.
        for part in text.split("/"):
            if len(part) == 36 and part.count("-") == 4:
                text = text.replace(part, self._names.setdefault(part, f"id {len(self._names)}"))
        return text if len(text) < 60 else text[:60]
