"""The tables behind the records, once, for both databases."""

from __future__ import annotations

from typing import Any, Final

from workflow_adapters.json_values import JsonValue
from workflow_adapters.payloads import read_payload
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.records.annotations import WorkflowAnnotationRecord
from workflow_adapters.records.artifacts import WorkflowArtifactRecord
from workflow_adapters.records.definitions import WorkflowDefinitionRecord
from workflow_adapters.records.job_queue import DequeueResult, JobRecord
from workflow_adapters.records.logs import WorkflowLogRecord
from workflow_adapters.records.outbox import OutboxRecord
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.stages import WorkflowStageRecord
from workflow_adapters.records.step_ledger import StepRecord
from workflow_adapters.sql.mapping import RecordMapping

_FROM_PAYLOAD: Final = ("workflow_id", "definition_version", "group_key")


def _job(*, payload: JsonValue, **columns: Any) -> JobRecord:
    return JobRecord(**columns, **_payload_fields(payload))


def _claimed_job(*, payload: JsonValue, **columns: Any) -> DequeueResult:
    return DequeueResult(**columns, **_payload_fields(payload))


def _payload_fields(payload: JsonValue) -> dict[str, Any]:
    stored = read_payload(payload)
    return {"payload": stored.payload, **{name: getattr(stored, name) for name in _FROM_PAYLOAD}}


RUN: Final = RecordMapping(
    "workflow_runs",
    WorkflowRunRecord,
    required_json=("input", "config"),
    # A database from before definition versions.
    absent={"definition_version": "NULL", "redrive_count": "0"},
)
DEFINITION: Final = RecordMapping("workflow_definitions", WorkflowDefinitionRecord, required_json=("snapshot",))
STAGE: Final = RecordMapping("workflow_stages", WorkflowStageRecord)
STEP: Final = RecordMapping("workflow_steps", StepRecord)
LOG: Final = RecordMapping("workflow_logs", WorkflowLogRecord)
ARTIFACT: Final = RecordMapping("workflow_artifacts", WorkflowArtifactRecord, required_json=("data",))
ANNOTATION: Final = RecordMapping("workflow_annotations", WorkflowAnnotationRecord, required_json=("value",))
OUTBOX: Final = RecordMapping("outbox_events", OutboxRecord, required_json=("payload",))
JOB: Final = RecordMapping("job_queue", JobRecord, build=_job, computed=_FROM_PAYLOAD)
CLAIMED_JOB: Final = RecordMapping(
    "job_queue", DequeueResult, build=_claimed_job, computed=_FROM_PAYLOAD, renamed={"job_id": "id"}
)
AI_CALL: Final = RecordMapping(
    "ai_calls",
    AICallRecord,
    # A database from before costs were taken apart.
    absent={
        "estimated_cost": "NULL",
        "reported_cost": "NULL",
        "cost_source": "NULL",
        "served_by": "NULL",
        "cached_input_tokens": "NULL",
        "reasoning_tokens": "NULL",
    },
)

MAPPINGS: Final[dict[str, RecordMapping[Any]]] = {
    "run": RUN,
    "definition": DEFINITION,
    "stage": STAGE,
    "step": STEP,
    "log": LOG,
    "artifact": ARTIFACT,
    "annotation": ANNOTATION,
    "outbox": OUTBOX,
    "job": JOB,
    "claimed_job": CLAIMED_JOB,
    "ai_call": AI_CALL,
}
"""What ``@name.columns`` may name."""
