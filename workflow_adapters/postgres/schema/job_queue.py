"""What the claims of `workflow_adapters.postgres.claims` and `fairness` need of job_queue beyond the reference.

Neither lockedAt nor updatedAt is in any index, so that a heartbeat touches no index at all.
"""

from __future__ import annotations

from typing import Final, LiteralString

from workflow_adapters.postgres.schema.migration import Index, Migration

# `workflow_adapters.postgres.lanes` makes the same values. Ids that are too long for an index entry, which none of ours
# is, must not keep others from writing them.
_LANE_AND_GROUP: Final[LiteralString] = """
ALTER TABLE @job_queue
ADD COLUMN wa_lane text COLLATE "C" GENERATED ALWAYS AS (
    CASE
        WHEN jsonb_typeof(payload -> '_workflowId') IS DISTINCT FROM 'string' THEN ''
        WHEN octet_length(payload ->> '_workflowId') > 800 THEN ':'
        WHEN jsonb_typeof(payload -> '_definitionVersion') IS DISTINCT FROM 'string'
            THEN octet_length(payload ->> '_workflowId')::text || ':' || (payload ->> '_workflowId')
        WHEN octet_length(payload ->> '_definitionVersion') > 800 THEN ':'
        ELSE octet_length(payload ->> '_workflowId')::text || ':' || (payload ->> '_workflowId')
            || '/' || (payload ->> '_definitionVersion')
    END
) STORED,
ADD COLUMN wa_group text COLLATE "C" GENERATED ALWAYS AS (
    CASE
        WHEN NOT coalesce(jsonb_typeof(payload -> '_groupKey') IN ('string', 'number', 'boolean'), false) THEN ''
        WHEN octet_length(payload ->> '_groupKey') > 800 THEN 'md5:' || md5(payload ->> '_groupKey')
        ELSE payload ->> '_groupKey'
    END
) STORED
"""

# Claims and acknowledgements leave a dead row each; room in the page keeps heartbeats in it, and vacuuming early keeps
# the head of the queue short.
_STORAGE: Final[LiteralString] = """
ALTER TABLE @job_queue SET (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 500
)
"""

# One row of many, each with room in its page, so that a claim's update stays there.
_TURNS: Final[LiteralString] = """
CREATE TABLE @wa_fairness_turns (
    bucket integer PRIMARY KEY,
    turn bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)
"""
_BUCKETS: Final[LiteralString] = """
INSERT INTO @wa_fairness_turns (bucket, turn) SELECT bucket, 0 FROM generate_series(0, 1023) AS bucket
"""

JOB_QUEUE: Final = Migration(
    version=2,
    name="claims of jobs by lane and group",
    statements=(_LANE_AND_GROUP, _STORAGE, _TURNS, _BUCKETS),
    indexes=(
        Index(
            name="wa_job_queue_ready",
            on='@job_queue (priority DESC, "createdAt", id COLLATE "C")'
            " WHERE status = 'PENDING' AND \"nextPollAt\" IS NULL",
        ),
        Index(
            name="wa_job_queue_dated",
            on='@job_queue (priority DESC, "createdAt", id COLLATE "C")'
            " WHERE status = 'PENDING' AND \"nextPollAt\" IS NOT NULL",
        ),
        Index(
            name="wa_job_queue_due",
            on='@job_queue ("nextPollAt") WHERE status = \'PENDING\' AND "nextPollAt" IS NOT NULL',
        ),
        Index(
            name="wa_job_queue_lane_ready",
            on='@job_queue (wa_lane, priority DESC, "createdAt", id COLLATE "C")'
            " WHERE status = 'PENDING' AND \"nextPollAt\" IS NULL",
        ),
        Index(
            name="wa_job_queue_lane_dated",
            on='@job_queue (wa_lane, priority DESC, "createdAt", id COLLATE "C")'
            " WHERE status = 'PENDING' AND \"nextPollAt\" IS NOT NULL",
        ),
        Index(
            name="wa_job_queue_lane_due",
            on='@job_queue (wa_lane, "nextPollAt") WHERE status = \'PENDING\' AND "nextPollAt" IS NOT NULL',
        ),
        Index(
            name="wa_job_queue_lane_group",
            on='@job_queue (wa_lane, wa_group, priority DESC, "createdAt", id COLLATE "C") WHERE status = \'PENDING\'',
        ),
        # An expression, so that no index on status can be taken for its equal.
        Index(
            name="wa_job_queue_running_group",
            on="@job_queue ((CASE WHEN status = 'RUNNING' THEN wa_group END))"
            " WHERE (CASE WHEN status = 'RUNNING' THEN wa_group END) IS NOT NULL",
        ),
    ),
)
