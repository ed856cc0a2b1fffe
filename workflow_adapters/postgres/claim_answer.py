"""What a claim's statement answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from workflow_adapters.errors import BackendError
from workflow_adapters.inputs.job_queue import DEFINITION_VERSION_MEMBER, GROUP_KEY_MEMBER, WORKFLOW_ID_MEMBER
from workflow_adapters.json_values import JsonObject, JsonValue, loads
from workflow_adapters.records.job_queue import DequeueResult, JobAckFence
from workflow_adapters.records.status import Status
from workflow_adapters.sql.columns import ms_to_instant
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.sql.tables import CLAIMED_JOB

_COLUMNS: Final = len(CLAIMED_JOB.columns)
_PAYLOAD: Final = CLAIMED_JOB.columns.index(CLAIMED_JOB["payload"])
_STARTED: Final = CLAIMED_JOB.columns.index(CLAIMED_JOB["started_at"])
_ATTEMPT: Final = CLAIMED_JOB.columns.index(CLAIMED_JOB["attempt"])


class Seen(NamedTuple):
    """A candidate. `turn` is that of its group, under a cap."""

    id: str
    priority: int
    turn: int | None


class Unreadable(NamedTuple):
    """A job that was claimed, with a payload that Python can not read. `why` is what there is to say of it."""

    id: str
    fence: JobAckFence
    why: str


class ClaimAnswer(NamedTuple):
    """The jobs that were claimed, in order; how many dead ones there were; candidates that were not taken."""

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

    unreadable: Sequence[Unreadable] = ()
    """Dead jobs too, but the claim could not tell: they are RUNNING still."""

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
    candidates = [row for row in rows if row[_COLUMNS] is None]
    running = [row for row in taken.values() if row[_COLUMNS] == Status.RUNNING]
    jobs, unreadable = _jobs(running)
    return ClaimAnswer(
        jobs=jobs,
        failed=len(taken) - len(jobs),
        seen=[_seen(row) for row in candidates if row[0] and row[0] not in taken],
        more=any(not row[0] for row in candidates),
        milliseconds=int(rows[0][_COLUMNS + 2] or 0) / 1000 if rows else 0.0,
        unreadable=unreadable,
    )


def _jobs(rows: Sequence[Row]) -> tuple[list[DequeueResult], list[Unreadable]]:
    """What `CLAIMED_JOB.read` makes of each row, at a third of the cost: batches are large and claims are many.

    The payloads, which are objects that name their workflow or the job would not be RUNNING, are decoded in one go.
    """
    try:
        payloads = cast("list[JsonObject]", loads(f"[{','.join(str(row[_PAYLOAD]) for row in rows)}]"))
    except BackendError:
        return _jobs_one_by_one(rows)
    return [_job(row, payload) for row, payload in zip(rows, payloads, strict=True)], []


def _jobs_one_by_one(rows: Sequence[Any]) -> tuple[list[DequeueResult], list[Unreadable]]:
    """One payload that can not be read, which another program wrote, shall not cost the others of its batch."""
    jobs: list[DequeueResult] = []
    unreadable: list[Unreadable] = []
    for row in rows:
        try:
            jobs.append(_job(row, cast("JsonObject", loads(row[_PAYLOAD]))))
        except BackendError as error:
            fence = JobAckFence(started_at=ms_to_instant(row[_STARTED]), attempt=row[_ATTEMPT])
            unreadable.append(Unreadable(row[0], fence, str(error)))
    return jobs, unreadable


def _job(row: Any, payload: JsonObject) -> DequeueResult:
    job_id, run_id, stage_id, priority, attempt, max_attempts, _, started_ms, *_ = row
    return DequeueResult(
        job_id=job_id,
        workflow_run_id=run_id,
        workflow_id=cast("str", payload.pop(WORKFLOW_ID_MEMBER)),
        stage_id=stage_id,
        priority=priority,
        attempt=attempt,
        max_attempts=max_attempts,
        definition_version=_text(payload.pop(DEFINITION_VERSION_MEMBER, None)),
        group_key=_text(payload.pop(GROUP_KEY_MEMBER, None)),
        payload=payload,
        started_at=ms_to_instant(started_ms),
    )


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _seen(row: Row) -> Seen:
    turn = row[_COLUMNS + 1]
    return Seen(id=str(row[0]), priority=int(row[3] or 0), turn=None if turn is None else int(turn))


def claim(statement: Statement) -> Operation[ClaimAnswer]:
    """Run a claim."""
    rows = yield statement
    return read_answer(rows)
