"""The reference's indexes, by the names that the TypeScript engine's tooling gives them. Unique keys are indexes."""

from __future__ import annotations

from typing import Final

from workflow_adapters.postgres.schema.migration import Index

REFERENCE_INDEXES: Final = (
    Index(name="workflow_runs_createdAt_id_idx", on='@workflow_runs ("createdAt" DESC, id DESC)'),
    Index(name="workflow_runs_status_createdAt_id_idx", on='@workflow_runs (status, "createdAt" DESC, id DESC)'),
    Index(
        name="workflow_runs_workflowId_createdAt_id_idx", on='@workflow_runs ("workflowId", "createdAt" DESC, id DESC)'
    ),
    Index(name="workflow_runs_status_priority_createdAt_idx", on='@workflow_runs (status, priority DESC, "createdAt")'),
    Index(name="workflow_runs_definitionVersion_idx", on='@workflow_runs ("definitionVersion")'),
    Index(
        name="workflow_runs_status_workflowId_definitionVersion_idx",
        on='@workflow_runs (status, "workflowId", "definitionVersion")',
    ),
    Index(name="workflow_stages_status_idx", on="@workflow_stages (status)"),
    Index(name="workflow_stages_nextPollAt_idx", on='@workflow_stages ("nextPollAt")'),
    Index(
        name="workflow_stages_workflowRunId_stageId_key",
        on='@workflow_stages ("workflowRunId", "stageId")',
        unique=True,
    ),
    Index(name="workflow_steps_stageRecordId_idx", on='@workflow_steps ("stageRecordId")'),
    Index(
        name="workflow_steps_stageRecordId_stepId_key", on='@workflow_steps ("stageRecordId", "stepId")', unique=True
    ),
    Index(name="workflow_logs_workflowRunId_idx", on='@workflow_logs ("workflowRunId")'),
    Index(name="workflow_logs_workflowStageId_idx", on='@workflow_logs ("workflowStageId")'),
    Index(name="workflow_artifacts_workflowRunId_idx", on='@workflow_artifacts ("workflowRunId")'),
    Index(
        name="workflow_artifacts_workflowRunId_key_key", on='@workflow_artifacts ("workflowRunId", key)', unique=True
    ),
    Index(name="workflow_annotations_workflowRunId_key_idx", on='@workflow_annotations ("workflowRunId", key)'),
    Index(
        name="workflow_annotations_workflowRunId_createdAt_idx",
        on='@workflow_annotations ("workflowRunId", "createdAt")',
    ),
    Index(name="workflow_annotations_workflowRunId_scope_idx", on='@workflow_annotations ("workflowRunId", scope)'),
    Index(
        name="workflow_annotations_workflowRunId_actorId_idx", on='@workflow_annotations ("workflowRunId", "actorId")'
    ),
    Index(
        name="workflow_annotations_workflowRunId_key_idempotencyKey_key",
        on='@workflow_annotations ("workflowRunId", key, "idempotencyKey")',
        unique=True,
    ),
    Index(name="job_queue_status_priority_createdAt_idx", on='@job_queue (status, priority DESC, "createdAt")'),
    Index(name="job_queue_status_createdAt_idx", on='@job_queue (status, "createdAt")'),
    Index(name="job_queue_nextPollAt_idx", on='@job_queue ("nextPollAt")'),
    Index(name="job_queue_workflowRunId_stageId_key", on='@job_queue ("workflowRunId", "stageId")', unique=True),
    Index(name="outbox_events_publishedAt_idx", on='@outbox_events ("publishedAt")'),
    Index(name="outbox_events_dlqAt_idx", on='@outbox_events ("dlqAt")'),
    Index(
        name="outbox_events_workflowRunId_sequence_key", on='@outbox_events ("workflowRunId", sequence)', unique=True
    ),
    Index(name="idempotency_keys_key_commandType_key", on='@idempotency_keys (key, "commandType")', unique=True),
    Index(name="ai_calls_batchId_idx", on='@ai_calls ("batchId")'),
    Index(name="ai_calls_topic_idx", on="@ai_calls (topic)"),
    Index(name="ai_calls_batch_request_unique", on='@ai_calls ("batchId", "requestId")', unique=True),
)
