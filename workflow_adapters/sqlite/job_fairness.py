"""The fair choice of a job: the next one whose group is not full. Strict, because one transaction writes at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString, TypeAlias

from workflow_adapters.errors import ConfigurationError
from workflow_adapters.inputs.job_queue import GROUP_KEY_MEMBER, JobQueueFairness
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.sqlite.job_claims import DEAD_LANE, FEW

_WINDOW: Final = 64

_Place: TypeAlias = tuple[int, int, str]
"""Where a job stands in the order of the claim; the last part is its id."""

_AT_PATH: Final[LiteralString] = """
    CASE
        WHEN json_type(payload, $1) = 'text' THEN json_extract(payload, $1)
        WHEN json_type(payload, $1) IN ('integer', 'real', 'true', 'false') THEN
            substr(json_extract(payload, $1, $1), 2, (length(json_extract(payload, $1, $1)) - 3) / 2)
        ELSE wa_group
    END
"""


class FairChoice:
    """Chooses under a cap. Its statements bind the path of the group first, whether they need it or not."""

    def __init__(self, fairness: JobQueueFairness) -> None:
        for name in fairness.path:
            if json.dumps(name, ensure_ascii=False) != f'"{name}"':
                raise ConfigurationError(
                    f"fairness: the member {name!r} of group_by has a character that a JSON path of SQLite can not hold"
                )
        self._cap = fairness.max_concurrent_per_group
        self._path = "$" + "".join(f'."{name}"' for name in fairness.path)
        self._is_indexed = fairness.path == (GROUP_KEY_MEMBER,)
        self._group: LiteralString = "wa_group" if self._is_indexed else _AT_PATH

    def choose(self, now: datetime, lanes: Sequence[str] | None) -> Operation[str | None]:
        """The id of the job to take. `lanes` None stands for all."""
        full = yield from self._full_groups()
        ready = yield from self._first_ready(lanes, full)
        dated = yield from self._first_dated(now, lanes, full)
        places = [place for place in (ready, dated) if place is not None]
        return min(places)[2] if places else None

    def _full_groups(self) -> Operation[list[str]]:
        rows = yield Statement(
            f"""
            SELECT {self._group}
            FROM @job_queue INDEXED BY wa_jobs_running
            WHERE status = 'RUNNING'
            GROUP BY 1
            HAVING count(*) >= $2
            """,
            (self._path, self._cap),
        )
        return [str(row[0]) for row in rows]

    def _first_ready(self, lanes: Sequence[str] | None, full: list[str]) -> Operation[_Place | None]:
        """Of the jobs without a date. A flood of a full group at the head is stepped over group by group."""
        rows = yield Statement(
            f"""
            SELECT priority, "createdAt", id, wa_lane, {self._group}
            FROM @job_queue INDEXED BY wa_jobs_ready
            WHERE status = 'PENDING' AND "nextPollAt" IS NULL
            ORDER BY priority DESC, "createdAt", id
            LIMIT $2
            """,
            (self._path, _WINDOW),
        )
        for row in rows:
            if row[3] == DEAD_LANE or ((lanes is None or row[3] in lanes) and row[4] not in full):
                return _place(row)
        if len(rows) < _WINDOW:
            return None
        if not self._is_indexed:
            return (yield from self._walk(lanes, full))
        return (yield from _first_of_groups((yield from _all_lanes()) if lanes is None else lanes, full))

    def _walk(self, lanes: Sequence[str] | None, full: list[str]) -> Operation[_Place | None]:
        rows = yield Statement(
            f"""
            SELECT priority, "createdAt", id
            FROM @job_queue INDEXED BY wa_jobs_ready
            WHERE status = 'PENDING' AND "nextPollAt" IS NULL
              AND (
                  wa_lane = '' OR (
                      ($2 IS NULL OR wa_lane IN (SELECT value FROM json_each($2)))
                      AND {self._group} NOT IN (SELECT value FROM json_each($3))
                  )
              )
            ORDER BY priority DESC, "createdAt", id
            LIMIT 1
            """,
            (self._path, lanes, full),
        )
        return _place(rows[0]) if rows else None

    def _first_dated(self, now: datetime, lanes: Sequence[str] | None, full: list[str]) -> Operation[_Place | None]:
        """Of the jobs whose date has come."""
        due = yield Statement(
            """
            SELECT 1 FROM @job_queue INDEXED BY wa_jobs_scheduled
            WHERE status = 'PENDING' AND "nextPollAt" <= $1
            LIMIT $2
            """,
            (now, FEW + 1),
        )
        index: LiteralString = "wa_jobs_scheduled" if len(due) <= FEW else "wa_jobs_scheduled_by_priority"
        rows = due and (
            yield Statement(
                f"""
                SELECT priority, "createdAt", id
                FROM @job_queue INDEXED BY {index}
                WHERE status = 'PENDING' AND "nextPollAt" <= $4
                  AND (
                      wa_lane = '' OR (
                          ($2 IS NULL OR wa_lane IN (SELECT value FROM json_each($2)))
                          AND {self._group} NOT IN (SELECT value FROM json_each($3))
                      )
                  )
                ORDER BY priority DESC, "createdAt", id
                LIMIT 1
                """,
                (self._path, lanes, full, now),
            )
        )
        return _place(rows[0]) if rows else None


def _place(row: Row) -> _Place:
    return -int(row[0] or 0), int(row[1] or 0), str(row[2])


def _all_lanes() -> Operation[list[str]]:
    rows = yield Statement(
        """
        WITH RECURSIVE lane (name) AS (
            SELECT (
                SELECT wa_lane FROM @job_queue INDEXED BY wa_jobs_ready_by_lane
                WHERE status = 'PENDING' AND "nextPollAt" IS NULL
                ORDER BY wa_lane
                LIMIT 1
            )
            UNION ALL
            SELECT (
                SELECT wa_lane FROM @job_queue INDEXED BY wa_jobs_ready_by_lane
                WHERE status = 'PENDING' AND "nextPollAt" IS NULL AND wa_lane > lane.name
                ORDER BY wa_lane
                LIMIT 1
            )
            FROM lane
            WHERE name IS NOT NULL
        )
        SELECT name FROM lane WHERE name IS NOT NULL
        """
    )
    return [str(row[0]) for row in rows]


def _first_of_groups(lanes: Sequence[str], full: list[str]) -> Operation[_Place | None]:
    rows = yield Statement(
        """
        WITH RECURSIVE head (lane, grp, id) AS (
            SELECT j.wa_lane, j.wa_group, j.id
            FROM json_each($1) AS served
            JOIN @job_queue j ON j.id = (
                SELECT id FROM @job_queue INDEXED BY wa_jobs_ready_by_group
                WHERE status = 'PENDING' AND "nextPollAt" IS NULL AND wa_lane = served.value
                ORDER BY wa_group, priority DESC, "createdAt", id
                LIMIT 1
            )
            UNION ALL
            SELECT j.wa_lane, j.wa_group, j.id
            FROM head
            JOIN @job_queue j ON j.id = (
                SELECT id FROM @job_queue INDEXED BY wa_jobs_ready_by_group
                WHERE status = 'PENDING' AND "nextPollAt" IS NULL AND wa_lane = head.lane AND wa_group > head.grp
                ORDER BY wa_group, priority DESC, "createdAt", id
                LIMIT 1
            )
        )
        SELECT j.priority, j."createdAt", j.id
        FROM head
        JOIN @job_queue j ON j.id = head.id
        WHERE head.lane = '' OR head.grp NOT IN (SELECT value FROM json_each($2))
        ORDER BY j.priority DESC, j."createdAt", j.id
        LIMIT 1
        """,
        (lanes, full),
    )
    return _place(rows[0]) if rows else None
