"""What the adapters of all tables have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from workflow_adapters.clock import Clock
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.runs import ServedDefinition, Serves
from workflow_adapters.memory.rows import copied
from workflow_adapters.memory.session import Session
from workflow_adapters.memory.tables import Tables
from workflow_adapters.payloads import is_served
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.unset import UNSET

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(microsecond=999_000, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
_ZERO: Final = timedelta(0)


class MemoryAdapter:
    """An adapter whose calls run in a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def clock(self) -> Clock:
        return self._session.home.clock


def given(patch: Any) -> dict[str, Any]:
    """The columns that a patch writes, JSON copied."""
    values = {field.name: getattr(patch, field.name) for field in fields(patch)}
    return {name: copied(value) for name, value in values.items() if value is not UNSET and name != "expected_version"}


def served(serves: Serves) -> Sequence[ServedDefinition] | None:
    """The definitions that a caller serves; None for any."""
    return None if serves is None or isinstance(serves, str) else serves


def serves_run(run: WorkflowRunRecord, serves: Serves) -> bool:
    return is_served(run.workflow_id, run.definition_version, served(serves))


def require_run(tables: Tables, run_id: str | None) -> None:
    if run_id is not None and run_id not in tables.runs:
        raise NotFoundError("run", run_id)


def require_stage(tables: Tables, stage_record_id: str | None) -> None:
    if stage_record_id is not None and stage_record_id not in tables.stages:
        raise NotFoundError("stage", stage_record_id)


def later(instant: datetime, span: timedelta) -> datetime:
    """`instant` + `span`, no further than datetimes reach."""
    try:
        return instant + span
    except OverflowError:
        return _LAST if span > _ZERO else _FIRST


def earlier(instant: datetime, span: timedelta) -> datetime:
    """`instant` - `span`, no further than datetimes reach."""
    try:
        return instant - span
    except OverflowError:
        return _FIRST if span > _ZERO else _LAST
