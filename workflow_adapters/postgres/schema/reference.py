"""The tables that a TypeScript engine on the same database has too: same names, columns, types and defaults.

Timestamps are without time zone and hold UTC. Their default is the session's local time, so every writer binds them.
"""

from __future__ import annotations

from typing import Final, LiteralString

from workflow_adapters.postgres.schema.migration import Migration
from workflow_adapters.postgres.schema.reference_indexes import REFERENCE_INDEXES

_STATUS: Final[LiteralString] = """
CREATE TYPE @Status AS ENUM ('PENDING', 'RUNNING', 'SUSPENDED', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')
"""

_RUNS: Final[LiteralString] = """
CREATE TABLE @workflow_runs (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" timestamp(3) NOT NULL,
    version integer NOT NULL DEFAULT 1,
    "workflowId" text NOT NULL,
    "workflowName" text NOT NULL,
    "workflowType" text NOT NULL,
    status @Status NOT NULL DEFAULT 'PENDING',
    "startedAt" timestamp(3),
    "completedAt" timestamp(3),
    duration integer,
    input jsonb NOT NULL,
    output jsonb,
    config jsonb NOT NULL DEFAULT '{}',
    "totalCost" double precision NOT NULL DEFAULT 0,
    "totalTokens" integer NOT NULL DEFAULT 0,
    priority integer NOT NULL DEFAULT 5,
    metadata jsonb,
    "definitionVersion" text,
    "redriveCount" integer NOT NULL DEFAULT 0
)
"""

_DEFINITIONS: Final[LiteralString] = """
CREATE TABLE @workflow_definitions (
    "workflowId" text NOT NULL,
    version text NOT NULL,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    snapshot jsonb NOT NULL,
    "structureHash" text NOT NULL,
    PRIMARY KEY ("workflowId", version)
)
"""

_STAGES: Final[LiteralString] = """
CREATE TABLE @workflow_stages (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" timestamp(3) NOT NULL,
    version integer NOT NULL DEFAULT 1,
    "workflowRunId" text NOT NULL REFERENCES @workflow_runs (id) ON UPDATE CASCADE ON DELETE CASCADE,
    "stageId" text NOT NULL,
    "stageName" text NOT NULL,
    "stageNumber" integer NOT NULL,
    "executionGroup" integer NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    status @Status NOT NULL DEFAULT 'PENDING',
    "startedAt" timestamp(3),
    "completedAt" timestamp(3),
    duration integer,
    "inputData" jsonb,
    "outputData" jsonb,
    config jsonb,
    "suspendedState" jsonb,
    "resumeData" jsonb,
    "nextPollAt" timestamp(3),
    "pollInterval" integer,
    "maxWaitUntil" timestamp(3),
    metrics jsonb,
    "embeddingInfo" jsonb,
    "errorMessage" text
)
"""

_STEPS: Final[LiteralString] = """
CREATE TABLE @workflow_steps (
    id text PRIMARY KEY,
    "stageRecordId" text NOT NULL REFERENCES @workflow_stages (id) ON UPDATE CASCADE ON DELETE CASCADE,
    "stepId" text NOT NULL,
    seq integer NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    "leaseExpiresAt" timestamp(3),
    "deadlineAt" timestamp(3),
    "externalKey" text,
    result jsonb,
    error text,
    "waitState" jsonb,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" timestamp(3) NOT NULL
)
"""

_LOGS: Final[LiteralString] = """
CREATE TABLE @workflow_logs (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "workflowRunId" text REFERENCES @workflow_runs (id) ON UPDATE CASCADE ON DELETE CASCADE,
    "workflowStageId" text REFERENCES @workflow_stages (id) ON UPDATE CASCADE ON DELETE CASCADE,
    level text NOT NULL,
    message text NOT NULL,
    metadata jsonb
)
"""

_ARTIFACTS: Final[LiteralString] = """
CREATE TABLE @workflow_artifacts (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" timestamp(3) NOT NULL,
    "workflowRunId" text NOT NULL REFERENCES @workflow_runs (id) ON UPDATE CASCADE ON DELETE CASCADE,
    "workflowStageId" text REFERENCES @workflow_stages (id) ON UPDATE CASCADE ON DELETE SET NULL,
    key text NOT NULL,
    type text NOT NULL,
    data jsonb NOT NULL,
    size integer NOT NULL,
    metadata jsonb
)
"""

_ANNOTATIONS: Final[LiteralString] = """
CREATE TABLE @workflow_annotations (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "workflowRunId" text NOT NULL REFERENCES @workflow_runs (id) ON UPDATE CASCADE ON DELETE CASCADE,
    "workflowStageRecordId" text REFERENCES @workflow_stages (id) ON UPDATE CASCADE ON DELETE SET NULL,
    attempt integer NOT NULL DEFAULT 0,
    scope text NOT NULL,
    "scopeId" text,
    "actorKind" text,
    "actorId" text,
    "actorVersion" text,
    key text NOT NULL,
    value jsonb NOT NULL,
    payload jsonb,
    "idempotencyKey" text
)
"""

_JOBS: Final[LiteralString] = """
CREATE TABLE @job_queue (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" timestamp(3) NOT NULL,
    "workflowRunId" text NOT NULL,
    "stageId" text NOT NULL,
    status @Status NOT NULL DEFAULT 'PENDING',
    priority integer NOT NULL DEFAULT 5,
    attempt integer NOT NULL DEFAULT 0,
    "maxAttempts" integer NOT NULL DEFAULT 3,
    "workerId" text,
    "lockedAt" timestamp(3),
    "startedAt" timestamp(3),
    "completedAt" timestamp(3),
    "nextPollAt" timestamp(3),
    payload jsonb,
    "lastError" text
)
"""

_OUTBOX: Final[LiteralString] = """
CREATE TABLE @outbox_events (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "workflowRunId" text NOT NULL,
    sequence integer NOT NULL,
    "eventType" text NOT NULL,
    payload jsonb NOT NULL,
    "causationId" text NOT NULL,
    "occurredAt" timestamp(3) NOT NULL,
    "publishedAt" timestamp(3),
    "retryCount" integer NOT NULL DEFAULT 0,
    "dlqAt" timestamp(3)
)
"""

_IDEMPOTENCY_KEYS: Final[LiteralString] = """
CREATE TABLE @idempotency_keys (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    key text NOT NULL,
    "commandType" text NOT NULL,
    result jsonb NOT NULL
)
"""

_AI_CALLS: Final[LiteralString] = """
CREATE TABLE @ai_calls (
    id text PRIMARY KEY,
    "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    topic text NOT NULL,
    "callType" text NOT NULL,
    "modelKey" text NOT NULL,
    "modelId" text NOT NULL,
    prompt text NOT NULL,
    response text NOT NULL,
    "inputTokens" integer NOT NULL,
    "outputTokens" integer NOT NULL,
    cost double precision NOT NULL,
    "estimatedCost" double precision,
    "reportedCost" double precision,
    "costSource" text,
    "servedBy" text,
    "cachedInputTokens" integer,
    "reasoningTokens" integer,
    "batchId" text,
    "requestId" text,
    metadata jsonb
)
"""

REFERENCE: Final = Migration(
    version=1,
    name="reference tables",
    statements=(
        _STATUS,
        _RUNS,
        _DEFINITIONS,
        _STAGES,
        _STEPS,
        _LOGS,
        _ARTIFACTS,
        _ANNOTATIONS,
        _JOBS,
        _OUTBOX,
        _IDEMPOTENCY_KEYS,
        _AI_CALLS,
    ),
    indexes=REFERENCE_INDEXES,
)
