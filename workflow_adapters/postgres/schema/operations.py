"""What listings, lookups and retention walk along beyond the reference."""

from __future__ import annotations

from typing import Final, LiteralString

from workflow_adapters.postgres.schema.migration import Index, Migration

# Finished jobs and runs by when they finished. Those without a completed_at, which others may have written, are few.
# Nothing here is by a job's updated_at: a heartbeat would have to touch the index.
FINISHED_JOB: Final[LiteralString] = (
    "CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED') THEN \"completedAt\" END"
)
UNDATED_JOB: Final[LiteralString] = (
    "CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED') AND \"completedAt\" IS NULL"
    ' THEN "createdAt" END'
)
FINISHED_RUN: Final[LiteralString] = (
    "CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN coalesce(\"completedAt\", \"updatedAt\") END"
)

OPERATIONS: Final = Migration(
    version=4,
    name="listings and retention",
    indexes=(
        Index(name="wa_job_queue_finished", on=f"@job_queue (({FINISHED_JOB})) WHERE ({FINISHED_JOB}) IS NOT NULL"),
        Index(name="wa_job_queue_undated", on=f"@job_queue (({UNDATED_JOB})) WHERE ({UNDATED_JOB}) IS NOT NULL"),
        Index(
            name="wa_workflow_runs_finished",
            on=f'@workflow_runs (({FINISHED_RUN}), id COLLATE "C") WHERE ({FINISHED_RUN}) IS NOT NULL',
        ),
        Index(
            name="wa_workflow_runs_pending",
            on='@workflow_runs (priority DESC, "createdAt", id COLLATE "C") WHERE status = \'PENDING\'',
        ),
        Index(
            name="wa_workflow_runs_version",
            on='@workflow_runs ("definitionVersion", "createdAt" DESC, id COLLATE "C" DESC)',
        ),
        Index(
            name="wa_workflow_stages_suspended",
            on='@workflow_stages ("nextPollAt", id COLLATE "C") WHERE status = \'SUSPENDED\'',
        ),
        Index(
            name="wa_workflow_logs_listed", on='@workflow_logs ("workflowRunId", "createdAt" DESC, id COLLATE "C" DESC)'
        ),
        Index(name="wa_idempotency_keys_acquired", on='@idempotency_keys ("createdAt", id COLLATE "C")'),
        Index(name="wa_ai_calls_created", on='@ai_calls ("createdAt", id COLLATE "C")'),
        Index(name="wa_ai_calls_topic", on='@ai_calls (topic COLLATE "C", "createdAt", id COLLATE "C")'),
        # By hash, for what stands in metadata may be longer than an entry of an index.
        Index(
            name="wa_ai_calls_metadata_batch",
            on="@ai_calls USING hash ((metadata ->> 'batchId'))"
            " WHERE \"batchId\" IS NULL AND metadata ->> 'batchId' IS NOT NULL",
        ),
    ),
)
