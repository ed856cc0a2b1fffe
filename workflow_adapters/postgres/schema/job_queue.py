"""What the claims of `workflow_adapters.postgres.claims` and `fairness` need of job_queue beyond the reference.

Neither lockedAt nor updatedAt is in any index, so that a heartbeat touches no index at all.
"""

from __future__ import annotations

from typing import Final, LiteralString

from workflow_adapters.postgres.schema.migration import Index, Migration

# What the claims look for. Each stands in one index alone, or two that can not be mistaken for each other, so that the
# server has no choice to make: where statistics say that hardly any job is PENDING, or RUNNING, it takes any index on
# status for as good as another, and reads and sorts all that is in it.
READY: Final[LiteralString] = "CASE WHEN status = 'PENDING' AND \"nextPollAt\" IS NULL THEN priority END"
DATED: Final[LiteralString] = "CASE WHEN status = 'PENDING' AND \"nextPollAt\" IS NOT NULL THEN priority END"
DUE_AT: Final[LiteralString] = "CASE WHEN status = 'PENDING' THEN \"nextPollAt\" END"
LANE_READY: Final[LiteralString] = "CASE WHEN status = 'PENDING' AND \"nextPollAt\" IS NULL THEN wa_lane END"
LANE_DATED: Final[LiteralString] = "CASE WHEN status = 'PENDING' AND \"nextPollAt\" IS NOT NULL THEN wa_lane END"
LANE: Final[LiteralString] = "CASE WHEN status = 'PENDING' THEN wa_lane END"
RUNNING_GROUP: Final[LiteralString] = "CASE WHEN status = 'RUNNING' THEN wa_group END"

# `workflow_adapters.postgres.lanes` makes the same values. Ids that are too long for an index entry, which none of ours
# is, must not keep others from writing them.
#
# In functions, and not in the columns' own expressions: those the server reads from its catalogue, some 12 kB of them,
# for every single statement that writes to the table, even where the payload stays as it is. In SQL they would be
# taken apart and put into the expression again.
_LANE: Final[LiteralString] = """
CREATE FUNCTION @wa_job_lane(payload jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $function$
BEGIN
    RETURN CASE
        WHEN jsonb_typeof(payload -> '_workflowId') IS DISTINCT FROM 'string' THEN ''
        WHEN octet_length(payload ->> '_workflowId') > 800 THEN ':'
        WHEN jsonb_typeof(payload -> '_definitionVersion') IS DISTINCT FROM 'string'
            THEN octet_length(payload ->> '_workflowId')::text || ':' || (payload ->> '_workflowId')
        WHEN octet_length(payload ->> '_definitionVersion') > 800 THEN ':'
        ELSE octet_length(payload ->> '_workflowId')::text || ':' || (payload ->> '_workflowId')
            || '/' || (payload ->> '_definitionVersion')
    END;
END
$function$
"""
_GROUP: Final[LiteralString] = """
CREATE FUNCTION @wa_job_group(payload jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $function$
BEGIN
    RETURN CASE
        WHEN NOT coalesce(jsonb_typeof(payload -> '_groupKey') IN ('string', 'number', 'boolean'), false) THEN ''
        WHEN octet_length(payload ->> '_groupKey') > 800 THEN 'md5:' || md5(payload ->> '_groupKey')
        ELSE payload ->> '_groupKey'
    END;
END
$function$
"""
# Whoever may write jobs has to be able to run them, whatever the database's default privileges are.
_LANE_FOR_ALL: Final[LiteralString] = "GRANT EXECUTE ON FUNCTION @wa_job_lane(jsonb) TO PUBLIC"
_GROUP_FOR_ALL: Final[LiteralString] = "GRANT EXECUTE ON FUNCTION @wa_job_group(jsonb) TO PUBLIC"
_LANE_AND_GROUP: Final[LiteralString] = """
ALTER TABLE @job_queue
ADD COLUMN wa_lane text COLLATE "C" GENERATED ALWAYS AS (@wa_job_lane(payload)) STORED,
ADD COLUMN wa_group text COLLATE "C" GENERATED ALWAYS AS (@wa_job_group(payload)) STORED
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
    statements=(
        _LANE,
        _GROUP,
        _LANE_FOR_ALL,
        _GROUP_FOR_ALL,
        _LANE_AND_GROUP,
        _STORAGE,
        _TURNS,
        _BUCKETS,
    ),
    indexes=(
        Index(
            name="wa_job_queue_ready",
            on=f'@job_queue (({READY}) DESC, "createdAt", id COLLATE "C") WHERE ({READY}) IS NOT NULL',
        ),
        Index(
            name="wa_job_queue_dated",
            on=f'@job_queue (({DATED}) DESC, "createdAt", id COLLATE "C") WHERE ({DATED}) IS NOT NULL',
        ),
        Index(name="wa_job_queue_due", on=f"@job_queue (({DUE_AT})) WHERE ({DUE_AT}) IS NOT NULL"),
        Index(
            name="wa_job_queue_lane_ready",
            on=f'@job_queue (({LANE_READY}), priority DESC, "createdAt", id COLLATE "C")'
            f" WHERE ({LANE_READY}) IS NOT NULL",
        ),
        Index(
            name="wa_job_queue_lane_dated",
            on=f'@job_queue (({LANE_DATED}), priority DESC, "createdAt", id COLLATE "C")'
            f" WHERE ({LANE_DATED}) IS NOT NULL",
        ),
        Index(
            name="wa_job_queue_lane_due",
            on=f'@job_queue (({LANE}), "nextPollAt") WHERE ({LANE}) IS NOT NULL AND "nextPollAt" IS NOT NULL',
        ),
        Index(
            name="wa_job_queue_lane_group",
            on=f'@job_queue (({LANE}), wa_group, priority DESC, "createdAt", id COLLATE "C")'
            f" WHERE ({LANE}) IS NOT NULL",
        ),
        Index(
            name="wa_job_queue_running_group",
            on=f"@job_queue (({RUNNING_GROUP})) WHERE ({RUNNING_GROUP}) IS NOT NULL",
        ),
    ),
)
