"""What a claim's statement answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import Status
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.sql.tables import CLAIMED_JOB

_COLUMNS = len(CLAIMED_JOB.columns)


class Seen(NamedTuple):
    """A candidate. `turn` is that of its group, under a cap."""

    id: str
    priority: int
    turn: int | None


class ClaimAnswer(NamedTuple):
    """The jobs that were claimed, in order; how many dead ones were failed; candidates that were not taken."""

    jobs: list[DequeueResult]
    failed: int
    seen: list[Seen]
    more: bool
    """There may be candidates behind what was looked at."""
    milliseconds: float
    """What the server spent on it."""
    costly: bool = False
    """It went through all groups."""

    looks_again: bool = False
    """It did not look at the queue itself."""

    @property
    def took(self) -> bool:
        return bool(self.jobs) or self.failed > 0

    @property
    def again(self) -> bool:
        """Whether another claim may find something where this one took less than it was to."""
        return self.took and (self.looks_again or self.more or self.costly or self.failed > 0)


def read_answer(rows: Sequence[Row]) -> ClaimAnswer:
    """Take the rows of `workflow_adapters.postgres.claims.ANSWER` apart."""
    taken = {row[0]: row for row in rows if row[_COLUMNS] is not None}
    jobs = [CLAIMED_JOB.read(row[:_COLUMNS]) for row in taken.values() if row[_COLUMNS] == Status.RUNNING]
    candidates = [row for row in rows if row[_COLUMNS] is None]
    return ClaimAnswer(
        jobs=jobs,
        failed=len(taken) - len(jobs),
        seen=[_seen(row) for row in candidates if row[0] and row[0] not in taken],
        more=any(not row[0] for row in candidates),
        milliseconds=int(rows[0][_COLUMNS + 2] or 0) / 1000 if rows else 0.0,
    )


def _seen(row: Row) -> Seen:
    turn = row[_COLUMNS + 1]
    return Seen(id=str(row[0]), priority=int(row[3] or 0), turn=None if turn is None else int(turn))


def claim(statement: Statement) -> Operation[ClaimAnswer]:
    """Run a claim."""
    rows = yield statement
    return read_answer(rows)
