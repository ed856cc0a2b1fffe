"""The tables of one state of a store, with the indexes that the ports read them by.

Each index ends with the table's key, so rows that are equal otherwise come in the order of their ids.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from workflow_adapters.ai_call_records import BATCH_ID_MEMBER
from workflow_adapters.memory.rows import IdempotencyRow, JobRow, OutboxRow
from workflow_adapters.memory.table import Change, Table
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.records.annotations import WorkflowAnnotationRecord
from workflow_adapters.records.artifacts import WorkflowArtifactRecord
from workflow_adapters.records.definitions import WorkflowDefinitionRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.step_ledger import StepRecord

_FIRST_INSTANT: Final = datetime.min.replace(tzinfo=UTC)


class RunsTable(Table[WorkflowRunRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("runs", lambda run: run.id, journal)
        self.by_status = self.index(lambda run: run.status, lambda run: (-run.priority, run.created_at))
        self.by_age = self.index(lambda _: True, lambda run: (run.created_at,))


class DefinitionsTable(Table[WorkflowDefinitionRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("definitions", lambda definition: (definition.workflow_id, definition.version), journal)


class StagesTable(Table[WorkflowStageRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("stages", lambda stage: stage.id, journal)
        self.by_pair = self.unique_index(lambda stage: (stage.workflow_run_id, stage.stage_id))
        self.by_run = self.index(
            lambda stage: stage.workflow_run_id, lambda stage: (stage.execution_group, stage.stage_number)
        )
        self.by_status = self.index(lambda stage: stage.status, lambda stage: (stage.next_poll_at or _FIRST_INSTANT,))


class StepsTable(Table[StepRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("steps", lambda step: (step.stage_record_id, step.step_id), journal)
        self.by_stage = self.index(lambda step: step.stage_record_id, lambda step: (step.seq,))


class LogsTable(Table[WorkflowLogRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("logs", lambda log: log.id, journal)
        self.by_run = self.index(lambda log: log.workflow_run_id, lambda log: (log.created_at,))
        self.by_stage = self.index(lambda log: log.workflow_stage_id, lambda log: (log.created_at,))


class AnnotationsTable(Table[WorkflowAnnotationRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("annotations", lambda annotation: annotation.id, journal)
        self.by_run = self.index(
            lambda annotation: annotation.workflow_run_id, lambda annotation: (annotation.created_at,)
        )
        self.by_stage = self.index(lambda annotation: annotation.workflow_stage_record_id)
        self.by_idempotency_key = self.unique_index(
            lambda annotation: (
                annotation.idempotency_key and (annotation.workflow_run_id, annotation.key, annotation.idempotency_key)
            )
        )


class ArtifactsTable(Table[WorkflowArtifactRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("artifacts", lambda artifact: (artifact.workflow_run_id, artifact.key), journal)
        self.by_run = self.index(lambda artifact: artifact.workflow_run_id)
        self.by_stage = self.index(lambda artifact: artifact.workflow_stage_id)


class JobsTable(Table[JobRow]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("jobs", lambda job: job.id, journal)
        self.by_status = self.index(lambda job: job.status, lambda job: (-job.priority, job.created_at))
        self.by_pair = self.unique_index(lambda job: (job.workflow_run_id, job.stage_id))
        self.by_run = self.index(lambda job: job.workflow_run_id, lambda job: (job.created_at,))
        self.by_age = self.index(lambda _: True, lambda job: (job.created_at,))


class OutboxTable(Table[OutboxRow]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("outbox", lambda row: row.event.id, journal)
        self.by_run = self.index(lambda row: row.event.workflow_run_id, lambda row: (row.event.sequence,))
        self.unpublished = self.index(
            lambda row: (
                row.event.workflow_run_id if row.event.published_at is None and row.event.dlq_at is None else None
            ),
            lambda row: (row.event.sequence,),
        )
        self.by_lease = self.index(lambda row: row.lease_token)
        self.dead = self.index(lambda row: row.event.dlq_at is not None or None, lambda row: (row.event.dlq_at,))


class IdempotencyTable(Table[IdempotencyRow]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("idempotency", lambda row: (row.key, row.command_type), journal)


class AICallsTable(Table[AICallRecord]):
    def __init__(self, journal: list[Change] | None) -> None:
        super().__init__("ai_calls", lambda call: call.id, journal)
        self.by_age = self.index(lambda _: True, lambda call: (call.created_at,))
        self.by_request = self.unique_index(
            lambda call: (
                (call.batch_id, call.request_id) if call.batch_id is not None and call.request_id is not None else None
            )
        )
        self.by_batch = self.index(lambda call: call.batch_id)
        self.by_metadata_batch = self.index(_batch_in_metadata)


def _batch_in_metadata(call: AICallRecord) -> str | None:
    batch_id = (call.metadata or {}).get(BATCH_ID_MEMBER)
    return batch_id if isinstance(batch_id, str) else None


class Tables:
    """One state of a store."""

    def __init__(self, journal: list[Change] | None = None) -> None:
        self.runs = RunsTable(journal)
        self.definitions = DefinitionsTable(journal)
        self.stages = StagesTable(journal)
        self.steps = StepsTable(journal)
        self.logs = LogsTable(journal)
        self.annotations = AnnotationsTable(journal)
        self.artifacts = ArtifactsTable(journal)
        self.jobs = JobsTable(journal)
        self.outbox = OutboxTable(journal)
        self.idempotency = IdempotencyTable(journal)
        self.ai_calls = AICallsTable(journal)
