"""The reference's tables: instants are integers of milliseconds since the epoch, JSON and enums are checked text."""

from __future__ import annotations

from typing import Final, LiteralString

TABLES: Final[dict[str, LiteralString]] = {
    "workflow_runs": """
        CREATE TABLE workflow_runs (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            "updatedAt" INTEGER NOT NULL,
            version INTEGER NOT NULL DEFAULT 1,
            "workflowId" TEXT NOT NULL,
            "workflowName" TEXT NOT NULL,
            "workflowType" TEXT NOT NULL,
            status TEXT NOT NULL DEFAULT 'PENDING' CHECK (
                status IN ('PENDING', 'RUNNING', 'SUSPENDED', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')
            ),
            "startedAt" INTEGER,
            "completedAt" INTEGER,
            duration INTEGER,
            input TEXT NOT NULL CHECK (json_valid(input)),
            output TEXT CHECK (output IS NULL OR json_valid(output)),
            config TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(config)),
            "totalCost" REAL NOT NULL DEFAULT 0,
            "totalTokens" INTEGER NOT NULL DEFAULT 0,
            priority INTEGER NOT NULL DEFAULT 5,
            metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
            "definitionVersion" TEXT,
            "redriveCount" INTEGER NOT NULL DEFAULT 0
        ) STRICT
    """,
    "workflow_definitions": """
        CREATE TABLE workflow_definitions (
            "workflowId" TEXT NOT NULL,
            version TEXT NOT NULL,
            "createdAt" INTEGER NOT NULL,
            snapshot TEXT NOT NULL CHECK (json_valid(snapshot)),
            "structureHash" TEXT NOT NULL,
            PRIMARY KEY ("workflowId", version)
        ) STRICT
    """,
    "workflow_stages": """
        CREATE TABLE workflow_stages (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            "updatedAt" INTEGER NOT NULL,
            version INTEGER NOT NULL DEFAULT 1,
            "workflowRunId" TEXT NOT NULL REFERENCES workflow_runs (id) ON DELETE CASCADE ON UPDATE CASCADE,
            "stageId" TEXT NOT NULL,
            "stageName" TEXT NOT NULL,
            "stageNumber" INTEGER NOT NULL,
            "executionGroup" INTEGER NOT NULL,
            attempt INTEGER NOT NULL DEFAULT 0,
            status TEXT NOT NULL DEFAULT 'PENDING' CHECK (
                status IN ('PENDING', 'RUNNING', 'SUSPENDED', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')
            ),
            "startedAt" INTEGER,
            "completedAt" INTEGER,
            duration INTEGER,
            "inputData" TEXT CHECK ("inputData" IS NULL OR json_valid("inputData")),
            "outputData" TEXT CHECK ("outputData" IS NULL OR json_valid("outputData")),
            config TEXT CHECK (config IS NULL OR json_valid(config)),
            "suspendedState" TEXT CHECK ("suspendedState" IS NULL OR json_valid("suspendedState")),
            "resumeData" TEXT CHECK ("resumeData" IS NULL OR json_valid("resumeData")),
            "nextPollAt" INTEGER,
            "pollInterval" INTEGER,
            "maxWaitUntil" INTEGER,
            metrics TEXT CHECK (metrics IS NULL OR json_valid(metrics)),
            "embeddingInfo" TEXT CHECK ("embeddingInfo" IS NULL OR json_valid("embeddingInfo")),
            "errorMessage" TEXT
        ) STRICT
    """,
    "workflow_steps": """
        CREATE TABLE workflow_steps (
            id TEXT NOT NULL PRIMARY KEY,
            "stageRecordId" TEXT NOT NULL REFERENCES workflow_stages (id) ON DELETE CASCADE ON UPDATE CASCADE,
            "stepId" TEXT NOT NULL,
            seq INTEGER NOT NULL,
            kind TEXT NOT NULL,
            status TEXT NOT NULL,
            attempt INTEGER NOT NULL DEFAULT 1,
            "leaseExpiresAt" INTEGER,
            "deadlineAt" INTEGER,
            "externalKey" TEXT,
            result TEXT CHECK (result IS NULL OR json_valid(result)),
            error TEXT,
            "waitState" TEXT CHECK ("waitState" IS NULL OR json_valid("waitState")),
            "createdAt" INTEGER NOT NULL,
            "updatedAt" INTEGER NOT NULL
        ) STRICT
    """,
    "workflow_logs": """
        CREATE TABLE workflow_logs (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            "workflowRunId" TEXT REFERENCES workflow_runs (id) ON DELETE CASCADE ON UPDATE CASCADE,
            "workflowStageId" TEXT REFERENCES workflow_stages (id) ON DELETE CASCADE ON UPDATE CASCADE,
            level TEXT NOT NULL,
            message TEXT NOT NULL,
            metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata))
        ) STRICT
    """,
    "workflow_artifacts": """
        CREATE TABLE workflow_artifacts (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            "updatedAt" INTEGER NOT NULL,
            "workflowRunId" TEXT NOT NULL REFERENCES workflow_runs (id) ON DELETE CASCADE ON UPDATE CASCADE,
            "workflowStageId" TEXT REFERENCES workflow_stages (id) ON DELETE SET NULL ON UPDATE CASCADE,
            key TEXT NOT NULL,
            type TEXT NOT NULL,
            data TEXT NOT NULL CHECK (json_valid(data)),
            size INTEGER NOT NULL,
            metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata))
        ) STRICT
    """,
    "workflow_annotations": """
        CREATE TABLE workflow_annotations (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            "workflowRunId" TEXT NOT NULL REFERENCES workflow_runs (id) ON DELETE CASCADE ON UPDATE CASCADE,
            "workflowStageRecordId" TEXT REFERENCES workflow_stages (id) ON DELETE SET NULL ON UPDATE CASCADE,
            attempt INTEGER NOT NULL DEFAULT 0,
            scope TEXT NOT NULL,
            "scopeId" TEXT,
            "actorKind" TEXT,
            "actorId" TEXT,
            "actorVersion" TEXT,
            key TEXT NOT NULL,
            value TEXT NOT NULL CHECK (json_valid(value)),
            payload TEXT CHECK (payload IS NULL OR json_valid(payload)),
            "idempotencyKey" TEXT
        ) STRICT
    """,
    "job_queue": """
        CREATE TABLE job_queue (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            "updatedAt" INTEGER NOT NULL,
            "workflowRunId" TEXT NOT NULL,
            "stageId" TEXT NOT NULL,
            status TEXT NOT NULL DEFAULT 'PENDING' CHECK (
                status IN ('PENDING', 'RUNNING', 'SUSPENDED', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')
            ),
            priority INTEGER NOT NULL DEFAULT 5,
            attempt INTEGER NOT NULL DEFAULT 0,
            "maxAttempts" INTEGER NOT NULL DEFAULT 3,
            "workerId" TEXT,
            "lockedAt" INTEGER,
            "startedAt" INTEGER,
            "completedAt" INTEGER,
            "nextPollAt" INTEGER,
            payload TEXT CHECK (payload IS NULL OR json_valid(payload)),
            "lastError" TEXT,
            -- Whom a job is for, as one text that no two (workflow, version) share; '' for one that nobody can run.
            wa_lane TEXT NOT NULL GENERATED ALWAYS AS (
                CASE
                    WHEN json_type(payload, '$._workflowId') IS NOT 'text' THEN ''
                    WHEN json_type(payload, '$._definitionVersion') IS NOT 'text' THEN
                        length(json_extract(payload, '$._workflowId')) || ':'
                        || json_extract(payload, '$._workflowId')
                    ELSE
                        length(json_extract(payload, '$._workflowId')) || ':'
                        || json_extract(payload, '$._workflowId')
                        || '/' || json_extract(payload, '$._definitionVersion')
                END
            ) STORED,
            -- The fairness group at its usual place. Asking for one path twice gives "[x,x]" with x as it is written.
            wa_group TEXT NOT NULL GENERATED ALWAYS AS (
                CASE
                    WHEN json_type(payload, '$._groupKey') IS 'text' THEN json_extract(payload, '$._groupKey')
                    WHEN json_type(payload, '$._groupKey') IN ('integer', 'real', 'true', 'false') THEN
                        substr(
                            json_extract(payload, '$._groupKey', '$._groupKey'), 2,
                            (length(json_extract(payload, '$._groupKey', '$._groupKey')) - 3) / 2
                        )
                    ELSE ''
                END
            ) STORED
        ) STRICT
    """,
    "outbox_events": """
        CREATE TABLE outbox_events (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            "workflowRunId" TEXT NOT NULL,
            sequence INTEGER NOT NULL,
            "eventType" TEXT NOT NULL,
            payload TEXT NOT NULL CHECK (json_valid(payload)),
            "causationId" TEXT NOT NULL,
            "occurredAt" INTEGER NOT NULL,
            "publishedAt" INTEGER,
            "retryCount" INTEGER NOT NULL DEFAULT 0,
            "dlqAt" INTEGER
        ) STRICT
    """,
    "idempotency_keys": """
        CREATE TABLE idempotency_keys (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            key TEXT NOT NULL,
            "commandType" TEXT NOT NULL,
            result TEXT NOT NULL CHECK (json_valid(result))
        ) STRICT
    """,
    "ai_calls": """
        CREATE TABLE ai_calls (
            id TEXT NOT NULL PRIMARY KEY,
            "createdAt" INTEGER NOT NULL,
            topic TEXT NOT NULL,
            "callType" TEXT NOT NULL,
            "modelKey" TEXT NOT NULL,
            "modelId" TEXT NOT NULL,
            prompt TEXT NOT NULL,
            response TEXT NOT NULL,
            "inputTokens" INTEGER NOT NULL,
            "outputTokens" INTEGER NOT NULL,
            cost REAL NOT NULL,
            "estimatedCost" REAL,
            "reportedCost" REAL,
            "costSource" TEXT,
            "servedBy" TEXT,
            "cachedInputTokens" INTEGER,
            "reasoningTokens" INTEGER,
            "batchId" TEXT,
            "requestId" TEXT,
            metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata))
        ) STRICT
    """,
}
