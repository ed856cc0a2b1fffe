-- The tables of a TypeScript deployment, as its tooling makes them: nothing of ours, and no schema named.

CREATE TYPE "Status" AS ENUM ('PENDING', 'RUNNING', 'SUSPENDED', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED');

CREATE TABLE "workflow_runs" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMP(3) NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "workflowId" TEXT NOT NULL,
    "workflowName" TEXT NOT NULL,
    "workflowType" TEXT NOT NULL,
    "status" "Status" NOT NULL DEFAULT 'PENDING',
    "startedAt" TIMESTAMP(3),
    "completedAt" TIMESTAMP(3),
    "duration" INTEGER,
    "input" JSONB NOT NULL,
    "output" JSONB,
    "config" JSONB NOT NULL DEFAULT '{}',
    "totalCost" DOUBLE PRECISION NOT NULL DEFAULT 0,
    "totalTokens" INTEGER NOT NULL DEFAULT 0,
    "priority" INTEGER NOT NULL DEFAULT 5,
    "metadata" JSONB,
    "definitionVersion" TEXT,
    "redriveCount" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "workflow_runs_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "workflow_definitions" (
    "workflowId" TEXT NOT NULL,
    "version" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "snapshot" JSONB NOT NULL,
    "structureHash" TEXT NOT NULL,

    CONSTRAINT "workflow_definitions_pkey" PRIMARY KEY ("workflowId","version")
);

CREATE TABLE "workflow_stages" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMP(3) NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "workflowRunId" TEXT NOT NULL,
    "stageId" TEXT NOT NULL,
    "stageName" TEXT NOT NULL,
    "stageNumber" INTEGER NOT NULL,
    "executionGroup" INTEGER NOT NULL,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "status" "Status" NOT NULL DEFAULT 'PENDING',
    "startedAt" TIMESTAMP(3),
    "completedAt" TIMESTAMP(3),
    "duration" INTEGER,
    "inputData" JSONB,
    "outputData" JSONB,
    "config" JSONB,
    "suspendedState" JSONB,
    "resumeData" JSONB,
    "nextPollAt" TIMESTAMP(3),
    "pollInterval" INTEGER,
    "maxWaitUntil" TIMESTAMP(3),
    "metrics" JSONB,
    "embeddingInfo" JSONB,
    "errorMessage" TEXT,

    CONSTRAINT "workflow_stages_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "workflow_steps" (
    "id" TEXT NOT NULL,
    "stageRecordId" TEXT NOT NULL,
    "stepId" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "attempt" INTEGER NOT NULL DEFAULT 1,
    "leaseExpiresAt" TIMESTAMP(3),
    "deadlineAt" TIMESTAMP(3),
    "externalKey" TEXT,
    "result" JSONB,
    "error" TEXT,
    "waitState" JSONB,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "workflow_steps_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "workflow_logs" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "workflowRunId" TEXT,
    "workflowStageId" TEXT,
    "level" TEXT NOT NULL,
    "message" TEXT NOT NULL,
    "metadata" JSONB,

    CONSTRAINT "workflow_logs_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "workflow_artifacts" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMP(3) NOT NULL,
    "workflowRunId" TEXT NOT NULL,
    "workflowStageId" TEXT,
    "key" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "data" JSONB NOT NULL,
    "size" INTEGER NOT NULL,
    "metadata" JSONB,

    CONSTRAINT "workflow_artifacts_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "workflow_annotations" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "workflowRunId" TEXT NOT NULL,
    "workflowStageRecordId" TEXT,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "scope" TEXT NOT NULL,
    "scopeId" TEXT,
    "actorKind" TEXT,
    "actorId" TEXT,
    "actorVersion" TEXT,
    "key" TEXT NOT NULL,
    "value" JSONB NOT NULL,
    "payload" JSONB,
    "idempotencyKey" TEXT,

    CONSTRAINT "workflow_annotations_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "job_queue" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMP(3) NOT NULL,
    "workflowRunId" TEXT NOT NULL,
    "stageId" TEXT NOT NULL,
    "status" "Status" NOT NULL DEFAULT 'PENDING',
    "priority" INTEGER NOT NULL DEFAULT 5,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "maxAttempts" INTEGER NOT NULL DEFAULT 3,
    "workerId" TEXT,
    "lockedAt" TIMESTAMP(3),
    "startedAt" TIMESTAMP(3),
    "completedAt" TIMESTAMP(3),
    "nextPollAt" TIMESTAMP(3),
    "payload" JSONB,
    "lastError" TEXT,

    CONSTRAINT "job_queue_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "outbox_events" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "workflowRunId" TEXT NOT NULL,
    "sequence" INTEGER NOT NULL,
    "eventType" TEXT NOT NULL,
    "payload" JSONB NOT NULL,
    "causationId" TEXT NOT NULL,
    "occurredAt" TIMESTAMP(3) NOT NULL,
    "publishedAt" TIMESTAMP(3),
    "retryCount" INTEGER NOT NULL DEFAULT 0,
    "dlqAt" TIMESTAMP(3),

    CONSTRAINT "outbox_events_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "idempotency_keys" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "key" TEXT NOT NULL,
    "commandType" TEXT NOT NULL,
    "result" JSONB NOT NULL,

    CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "ai_calls" (
    "id" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "topic" TEXT NOT NULL,
    "callType" TEXT NOT NULL,
    "modelKey" TEXT NOT NULL,
    "modelId" TEXT NOT NULL,
    "prompt" TEXT NOT NULL,
    "response" TEXT NOT NULL,
    "inputTokens" INTEGER NOT NULL,
    "outputTokens" INTEGER NOT NULL,
    "cost" DOUBLE PRECISION NOT NULL,
    "estimatedCost" DOUBLE PRECISION,
    "reportedCost" DOUBLE PRECISION,
    "costSource" TEXT,
    "servedBy" TEXT,
    "cachedInputTokens" INTEGER,
    "reasoningTokens" INTEGER,
    "batchId" TEXT,
    "requestId" TEXT,
    "metadata" JSONB,

    CONSTRAINT "ai_calls_pkey" PRIMARY KEY ("id")
);

CREATE INDEX "workflow_runs_createdAt_id_idx" ON "workflow_runs"("createdAt" DESC, "id" DESC);
CREATE INDEX "workflow_runs_status_createdAt_id_idx" ON "workflow_runs"("status", "createdAt" DESC, "id" DESC);
CREATE INDEX "workflow_runs_workflowId_createdAt_id_idx" ON "workflow_runs"("workflowId", "createdAt" DESC, "id" DESC);
CREATE INDEX "workflow_runs_status_priority_createdAt_idx" ON "workflow_runs"("status", "priority" DESC, "createdAt");
CREATE INDEX "workflow_runs_definitionVersion_idx" ON "workflow_runs"("definitionVersion");
CREATE INDEX "workflow_runs_status_workflowId_definitionVersion_idx" ON "workflow_runs"("status", "workflowId", "definitionVersion");

CREATE INDEX "workflow_stages_status_idx" ON "workflow_stages"("status");
CREATE INDEX "workflow_stages_nextPollAt_idx" ON "workflow_stages"("nextPollAt");
CREATE UNIQUE INDEX "workflow_stages_workflowRunId_stageId_key" ON "workflow_stages"("workflowRunId", "stageId");

CREATE INDEX "workflow_steps_stageRecordId_idx" ON "workflow_steps"("stageRecordId");
CREATE UNIQUE INDEX "workflow_steps_stageRecordId_stepId_key" ON "workflow_steps"("stageRecordId", "stepId");

CREATE INDEX "workflow_logs_workflowRunId_idx" ON "workflow_logs"("workflowRunId");
CREATE INDEX "workflow_logs_workflowStageId_idx" ON "workflow_logs"("workflowStageId");

CREATE INDEX "workflow_artifacts_workflowRunId_idx" ON "workflow_artifacts"("workflowRunId");
CREATE UNIQUE INDEX "workflow_artifacts_workflowRunId_key_key" ON "workflow_artifacts"("workflowRunId", "key");

CREATE INDEX "workflow_annotations_workflowRunId_key_idx" ON "workflow_annotations"("workflowRunId", "key");
CREATE INDEX "workflow_annotations_workflowRunId_createdAt_idx" ON "workflow_annotations"("workflowRunId", "createdAt");
CREATE INDEX "workflow_annotations_workflowRunId_scope_idx" ON "workflow_annotations"("workflowRunId", "scope");
CREATE INDEX "workflow_annotations_workflowRunId_actorId_idx" ON "workflow_annotations"("workflowRunId", "actorId");
CREATE UNIQUE INDEX "workflow_annotations_workflowRunId_key_idempotencyKey_key" ON "workflow_annotations"("workflowRunId", "key", "idempotencyKey");

CREATE INDEX "job_queue_status_priority_createdAt_idx" ON "job_queue"("status", "priority" DESC, "createdAt");
CREATE INDEX "job_queue_status_createdAt_idx" ON "job_queue"("status", "createdAt");
CREATE INDEX "job_queue_nextPollAt_idx" ON "job_queue"("nextPollAt");
CREATE UNIQUE INDEX "job_queue_workflowRunId_stageId_key" ON "job_queue"("workflowRunId", "stageId");

CREATE INDEX "outbox_events_publishedAt_idx" ON "outbox_events"("publishedAt");
CREATE INDEX "outbox_events_dlqAt_idx" ON "outbox_events"("dlqAt");
CREATE UNIQUE INDEX "outbox_events_workflowRunId_sequence_key" ON "outbox_events"("workflowRunId", "sequence");

CREATE UNIQUE INDEX "idempotency_keys_key_commandType_key" ON "idempotency_keys"("key", "commandType");

CREATE INDEX "ai_calls_batchId_idx" ON "ai_calls"("batchId");
CREATE INDEX "ai_calls_topic_idx" ON "ai_calls"("topic");
CREATE UNIQUE INDEX "ai_calls_batch_request_unique" ON "ai_calls"("batchId", "requestId");

ALTER TABLE "workflow_stages" ADD CONSTRAINT "workflow_stages_workflowRunId_fkey" FOREIGN KEY ("workflowRunId") REFERENCES "workflow_runs"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "workflow_steps" ADD CONSTRAINT "workflow_steps_stageRecordId_fkey" FOREIGN KEY ("stageRecordId") REFERENCES "workflow_stages"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "workflow_logs" ADD CONSTRAINT "workflow_logs_workflowRunId_fkey" FOREIGN KEY ("workflowRunId") REFERENCES "workflow_runs"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "workflow_logs" ADD CONSTRAINT "workflow_logs_workflowStageId_fkey" FOREIGN KEY ("workflowStageId") REFERENCES "workflow_stages"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "workflow_artifacts" ADD CONSTRAINT "workflow_artifacts_workflowRunId_fkey" FOREIGN KEY ("workflowRunId") REFERENCES "workflow_runs"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "workflow_artifacts" ADD CONSTRAINT "workflow_artifacts_workflowStageId_fkey" FOREIGN KEY ("workflowStageId") REFERENCES "workflow_stages"("id") ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE "workflow_annotations" ADD CONSTRAINT "workflow_annotations_workflowRunId_fkey" FOREIGN KEY ("workflowRunId") REFERENCES "workflow_runs"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "workflow_annotations" ADD CONSTRAINT "workflow_annotations_workflowStageRecordId_fkey" FOREIGN KEY ("workflowStageRecordId") REFERENCES "workflow_stages"("id") ON DELETE SET NULL ON UPDATE CASCADE;
