"""Claims on the bare reference schema, and wherever fairness goes by another path than `_groupKey`.

They are made like those of `workflow_adapters.postgres.claims`, but what a job is for and which group it is in is
worked out from its payload while the queue is read. So the cost grows with what is passed over and, under a cap, with
the number of RUNNING jobs. Jobs are read in the order of the reference's index, which leaves equal created_at
unordered; with the id in that order all of them would have to be sorted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Final, LiteralString

from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.postgres.claims import CLOCK, number, take
from workflow_adapters.sql.statement import Argument, Statement

_DUE_AND_SERVED: Final[LiteralString] = """
                status = 'PENDING'
                AND ("nextPollAt" IS NULL OR "nextPollAt" <= (SELECT now FROM clock))
                AND CASE
                    WHEN $4::text[] IS NULL THEN true
                    WHEN jsonb_typeof(payload -> '_workflowId') IS DISTINCT FROM 'string' THEN true
                    WHEN jsonb_typeof(payload -> '_definitionVersion') IS DISTINCT FROM 'string'
                        THEN payload ->> '_workflowId' = ANY ($4::text[])
                    ELSE (payload ->> '_workflowId', payload ->> '_definitionVersion')
                        IN (SELECT * FROM unnest($4::text[], $5::text[]))
                END"""

# Strict, so that a path does not look into arrays; silent, so that it finds nothing where there is nothing.
_GROUP: Final[LiteralString] = """(
            SELECT coalesce(
                CASE WHEN jsonb_typeof(at_path) IN ('string', 'number', 'boolean') THEN at_path #>> '{}' END,
                CASE WHEN jsonb_typeof(key) IN ('string', 'number', 'boolean') THEN key #>> '{}' END,
                ''
            ) AS name
            FROM (
                SELECT
                    jsonb_path_query_first(job.payload, $7::text::jsonpath, '{}', true) AS at_path,
                    job.payload -> '_groupKey' AS key
            ) found
        )"""


def claim_from_reference(
    worker_id: str, limit: int, lookahead: int, window: int, serves: Sequence[ServedDefinition] | None
) -> Statement:
    """Whatever is due and served."""
    return Statement(_claim_from_reference(window), (worker_id, limit, lookahead, *_pairs(serves)))


@cache
def _claim_from_reference(window: int) -> LiteralString:
    return f"""
        WITH {CLOCK},
        candidate AS MATERIALIZED (
            SELECT id, priority, "createdAt", NULL::bigint AS turn
            FROM @job_queue
            WHERE {_DUE_AND_SERVED}
            ORDER BY priority DESC, "createdAt"
            LIMIT {number(window)}
        ),
        {take(window)}
        """


def take_turn(path: Sequence[str]) -> Statement:
    """Wait for other claims under a cap by the same path, and keep them waiting until this transaction ends.

    Answers the transaction's isolation. The claim must be a statement of its own, whose snapshot is younger than the
    lock.
    """
    return Statement(
        """
        SELECT current_setting('transaction_isolation'),
            pg_advisory_xact_lock(hashtext('workflow_adapters fairness'), hashtext($1::text))::text
        """,
        (_jsonpath(path),),
    )


def claim_fairly_from_reference(
    worker_id: str,
    limit: int,
    window: int,
    serves: Sequence[ServedDefinition] | None,
    cap: int,
    path: Sequence[str],
    *,
    insertion_order: bool,
) -> Statement:
    """Whatever is due, served and has room, for whoever has the turn. Insertion order costs a sort of equals."""
    order: LiteralString = ', id COLLATE "C"' if insertion_order else ""
    return Statement(
        f"""
        WITH {CLOCK},
        running AS MATERIALIZED (
            SELECT grp.name, count(*) AS number
            FROM @job_queue job
            CROSS JOIN LATERAL {_GROUP} grp
            WHERE job.status = 'RUNNING'
            GROUP BY grp.name
        ),
        due AS MATERIALIZED (
            SELECT job.id, job.priority, job."createdAt", grp.name, job.dead
            FROM (
                SELECT
                    id, priority, "createdAt", payload,
                    jsonb_typeof(payload -> '_workflowId') IS DISTINCT FROM 'string' AS dead
                FROM @job_queue
                WHERE {_DUE_AND_SERVED}
                ORDER BY priority DESC, "createdAt"{order}
            ) job
            CROSS JOIN LATERAL {_GROUP} grp
            WHERE job.dead OR grp.name <> ALL (ARRAY(SELECT name FROM running WHERE number >= $6::int))
            ORDER BY priority DESC, "createdAt"{order}
            LIMIT {number(window)}
        ),
        candidate AS MATERIALIZED (
            SELECT ranked.id, ranked.priority, ranked."createdAt", NULL::bigint AS turn
            FROM (
                SELECT *, row_number() OVER (PARTITION BY name ORDER BY priority DESC, "createdAt"{order}) AS place
                FROM due
            ) ranked
            LEFT JOIN running ON running.name = ranked.name
            WHERE ranked.dead OR coalesce(running.number, 0) + least(ranked.place, $2::int) <= $6::int
            ORDER BY priority DESC, "createdAt"{order}
            LIMIT 5000
        ),
        {take(window, "due")}
        """,
        (worker_id, limit, 0, *_pairs(serves), cap, _jsonpath(path)),
    )


def _pairs(serves: Sequence[ServedDefinition] | None) -> tuple[Argument, Argument]:
    if serves is None:
        return None, None
    return [served.workflow_id for served in serves], [served.version for served in serves]


def _jsonpath(path: Sequence[str]) -> str:
    return "strict $" + "".join(f".{json.dumps(name)}" for name in path)
