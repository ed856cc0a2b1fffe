"""Operations that are one statement, and the loops that several share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeVar

from workflow_adapters.errors import BackendBusyError, Entity, NotFoundError
from workflow_adapters.sql.mapping import RecordMapping
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.unset import UNSET, Unset
from workflow_adapters.validation import check_version

R = TypeVar("R")

ATTEMPTS: Final = 20
"""How often an operation looks again when what it found was gone at the next statement."""


def none(statement: Statement) -> Operation[None]:
    """Run a statement whose rows are of no interest."""
    yield statement


def first(mapping: RecordMapping[R], statement: Statement) -> Operation[R | None]:
    """The record of the first row, or None."""
    rows = yield statement
    return mapping.read(rows[0]) if rows else None


def every(mapping: RecordMapping[R], statement: Statement) -> Operation[list[R]]:
    """The records of all rows."""
    rows = yield statement
    return [mapping.read(row) for row in rows]


def count(statement: Statement) -> Operation[int]:
    """How many rows there are: of a write, those that it returned."""
    rows = yield statement
    return len(rows)


def lost_race(what: str) -> BackendBusyError:
    """For an operation that found the row changed at each of its attempts."""
    return BackendBusyError(f"{what} changed at every one of {ATTEMPTS} attempts; try again later")


def versioned_update(
    entity: Entity, id: str, expected: int | Unset, update: Statement, read_version: Statement
) -> Operation[None]:
    """Run an update that returns the row it wrote, and tell a stale version from a missing row when there is none."""
    for _ in range(ATTEMPTS):
        if (yield update):
            return
        rows = yield read_version
        if not rows:
            raise NotFoundError(entity, id)
        check_version(entity, id, expected, int(rows[0][0] or 0))
    raise lost_race(f"the {entity} {id!r}")


def insert_under_parents(insert: Statement, run_ids: Collection[str], stage_ids: Collection[str]) -> Operation[Row]:
    """Run an insert that returns a row unless a parent is missing, and say which one it is."""
    for _ in range(ATTEMPTS):
        if rows := (yield insert):
            return rows[0]
        yield from require_parents(run_ids, stage_ids)
    raise lost_race("a parent of the row")


def require_parents(run_ids: Collection[str], stage_ids: Collection[str]) -> Operation[None]:
    """Raise NotFoundError naming the first run, or else the first stage, that does not exist."""
    if run_ids:
        rows = yield Statement("SELECT id FROM @workflow_runs WHERE id = ANY($1::text[])", (list(run_ids),))
        _require("run", run_ids, rows)
    if stage_ids:
        rows = yield Statement("SELECT id FROM @workflow_stages WHERE id = ANY($1::text[])", (list(stage_ids),))
        _require("stage", stage_ids, rows)


def _require(entity: Entity, ids: Collection[str], rows: Sequence[Row]) -> None:
    stored = {row[0] for row in rows}
    for parent in ids:
        if parent not in stored:
            raise NotFoundError(entity, parent)


def given(value: int | Unset) -> int | None:
    """An optional number as an argument."""
    return None if value is UNSET else value
