"""Indexes: the reference's keys, and what the claims, sweeps and listings of SQLite walk along.

The names of the reference's are the reference's; ours begin with ``wa_``. Every index is paid for by every write, so
those of the reference that no statement of SQLite uses are left out.
"""

from __future__ import annotations

from typing import Final, LiteralString

_KEYS: Final[tuple[LiteralString, ...]] = (
    """
    CREATE UNIQUE INDEX "workflow_stages_workflowRunId_stageId_key"
    ON workflow_stages ("workflowRunId", "stageId")
    """,
    """
    CREATE UNIQUE INDEX "workflow_steps_stageRecordId_stepId_key"
    ON workflow_steps ("stageRecordId", "stepId")
    """,
    """
    CREATE UNIQUE INDEX "workflow_artifacts_workflowRunId_key_key"
    ON workflow_artifacts ("workflowRunId", key)
    """,
    """
    CREATE UNIQUE INDEX "workflow_annotations_workflowRunId_key_idempotencyKey_key"
    ON workflow_annotations ("workflowRunId", key, "idempotencyKey")
    """,
    """
    CREATE UNIQUE INDEX "job_queue_workflowRunId_stageId_key"
    ON job_queue ("workflowRunId", "stageId")
    """,
    """
    CREATE UNIQUE INDEX "outbox_events_workflowRunId_sequence_key"
    ON outbox_events ("workflowRunId", sequence)
    """,
    """
    CREATE UNIQUE INDEX "idempotency_keys_key_commandType_key"
    ON idempotency_keys (key, "commandType")
    """,
    """
    CREATE UNIQUE INDEX ai_calls_batch_request_unique
    ON ai_calls ("batchId", "requestId")
    """,
)

_CLAIMS: Final[tuple[LiteralString, ...]] = (
    """
    CREATE INDEX wa_runs_pending
    ON workflow_runs (priority DESC, "createdAt", id)
    WHERE status = 'PENDING'
    """,
    """
    CREATE INDEX wa_stages_suspended
    ON workflow_stages ("nextPollAt", id)
    WHERE status = 'SUSPENDED' AND "nextPollAt" IS NOT NULL
    """,
    """
    CREATE INDEX wa_jobs_ready
    ON job_queue (priority DESC, "createdAt", id)
    WHERE status = 'PENDING' AND "nextPollAt" IS NULL
    """,
    """
    CREATE INDEX wa_jobs_ready_by_lane
    ON job_queue (wa_lane, priority DESC, "createdAt", id)
    WHERE status = 'PENDING' AND "nextPollAt" IS NULL
    """,
    """
    CREATE INDEX wa_jobs_ready_by_group
    ON job_queue (wa_lane, wa_group, priority DESC, "createdAt", id)
    WHERE status = 'PENDING' AND "nextPollAt" IS NULL
    """,
    """
    CREATE INDEX wa_jobs_scheduled
    ON job_queue ("nextPollAt", wa_lane)
    WHERE status = 'PENDING' AND "nextPollAt" IS NOT NULL
    """,
    """
    CREATE INDEX wa_jobs_scheduled_by_priority
    ON job_queue (priority DESC, "createdAt", id, "nextPollAt", wa_lane)
    WHERE status = 'PENDING' AND "nextPollAt" IS NOT NULL
    """,
    """
    CREATE INDEX wa_jobs_running
    ON job_queue (wa_group)
    WHERE status = 'RUNNING'
    """,
    """
    CREATE INDEX wa_outbox_unpublished
    ON outbox_events ("workflowRunId", sequence)
    WHERE "publishedAt" IS NULL AND "dlqAt" IS NULL
    """,
)

_LISTINGS: Final[tuple[LiteralString, ...]] = (
    """
    CREATE INDEX "workflow_runs_createdAt_id_idx"
    ON workflow_runs ("createdAt" DESC, id DESC)
    """,
    """
    CREATE INDEX "workflow_runs_status_createdAt_id_idx"
    ON workflow_runs (status, "createdAt" DESC, id DESC)
    """,
    """
    CREATE INDEX "workflow_runs_workflowId_createdAt_id_idx"
    ON workflow_runs ("workflowId", "createdAt" DESC, id DESC)
    """,
    """
    CREATE INDEX "workflow_logs_workflowRunId_idx"
    ON workflow_logs ("workflowRunId", "createdAt", id)
    """,
    """
    CREATE INDEX "workflow_annotations_workflowRunId_createdAt_idx"
    ON workflow_annotations ("workflowRunId", "createdAt", id)
    """,
    """
    CREATE INDEX wa_jobs_status
    ON job_queue (status, "createdAt" DESC, id DESC)
    """,
    """
    CREATE INDEX wa_jobs_age
    ON job_queue ("createdAt" DESC, id DESC)
    """,
    """
    CREATE INDEX wa_outbox_published
    ON outbox_events ("publishedAt")
    WHERE "publishedAt" IS NOT NULL
    """,
    """
    CREATE INDEX "outbox_events_dlqAt_idx"
    ON outbox_events ("dlqAt", id)
    WHERE "dlqAt" IS NOT NULL
    """,
    """
    CREATE INDEX ai_calls_topic_idx
    ON ai_calls (topic)
    """,
    """
    CREATE INDEX wa_calls_batch
    ON ai_calls (json_extract(metadata, '$.batchId'))
    WHERE "batchId" IS NULL AND metadata IS NOT NULL
    """,
)

_RETENTION: Final[tuple[LiteralString, ...]] = (
    """
    CREATE INDEX wa_runs_finished
    ON workflow_runs (coalesce("completedAt", "updatedAt"), id, status)
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    """,
    """
    CREATE INDEX wa_jobs_finished
    ON job_queue (coalesce("completedAt", "updatedAt"), id)
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')
    """,
    """
    CREATE INDEX wa_keys_age
    ON idempotency_keys ("createdAt", id)
    """,
    """
    CREATE INDEX wa_calls_age
    ON ai_calls ("createdAt", id)
    """,
)

# A foreign key without an index on its column makes each delete of a parent walk the whole table of the children.
_CHILDREN: Final[tuple[LiteralString, ...]] = (
    """
    CREATE INDEX "workflow_logs_workflowStageId_idx"
    ON workflow_logs ("workflowStageId")
    WHERE "workflowStageId" IS NOT NULL
    """,
    """
    CREATE INDEX wa_artifacts_stage
    ON workflow_artifacts ("workflowStageId")
    WHERE "workflowStageId" IS NOT NULL
    """,
    """
    CREATE INDEX wa_annotations_stage
    ON workflow_annotations ("workflowStageRecordId")
    WHERE "workflowStageRecordId" IS NOT NULL
    """,
)

INDEXES: Final[tuple[LiteralString, ...]] = (*_KEYS, *_CLAIMS, *_LISTINGS, *_RETENTION, *_CHILDREN)
