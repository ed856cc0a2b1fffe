"""Between records and the fields of a hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from workflow_adapters import (
    DequeueResult,
    EnqueueJobInput,
    JobAckFence,
    JobRecord,
    JsonObject,
    Status,
)
from workflow_adapters.inputs.job_queue import DEFAULT_MAX_ATTEMPTS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def milliseconds(span: timedelta) -> int:
    return span // _MS


def written(instant: datetime) -> str:
    return str(milliseconds(instant - _EPOCH))


def new_job(job: EnqueueJobInput) -> dict[str, str]:
    """What a fresh job's hash holds besides its stamps. None is left out."""
    fields = {
        "workflow_run_id": job.workflow_run_id,
        "workflow_id": job.workflow_id,
        "stage_id": job.stage_id,
        "status": Status.PENDING.value,
        "priority": str(job.priority),
        "attempt": "0",
        "max_attempts": str(DEFAULT_MAX_ATTEMPTS),
        # Only ever a text to Lua, whose numbers are doubles.
        "payload": json.dumps(job.payload or {}, ensure_ascii=False, allow_nan=False),
    }
    optional = {
        "group_key": job.group_key,
        "definition_version": job.definition_version,
        "next_poll_at": None if job.scheduled_for is None else written(job.scheduled_for),
    }
    return fields | {name: value for name, value in optional.items() if value is not None}


def claim_of(job_id: str, fence: JobAckFence | None) -> dict[str, str]:
    """A claim as acknowledge.lua takes it."""
    if fence is None:
        return {"job_id": job_id}
    return {"job_id": job_id, "started_at": written(fence.started_at), "attempt": str(fence.attempt)}


def job_record(fields: Mapping[str, str]) -> JobRecord:
    return JobRecord(
        **_common(fields),
        id=fields["id"],
        status=Status(fields["status"]),
        created_at=_instant(fields["created_at"]),
        updated_at=_instant(fields["updated_at"]),
        started_at=_optional_instant(fields, "started_at"),
        worker_id=fields.get("worker_id"),
        locked_at=_optional_instant(fields, "locked_at"),
        completed_at=_optional_instant(fields, "completed_at"),
        next_poll_at=_optional_instant(fields, "next_poll_at"),
        last_error=fields.get("last_error"),
    )


def dequeue_result(fields: Mapping[str, str]) -> DequeueResult:
    return DequeueResult(**_common(fields), job_id=fields["id"], started_at=_instant(fields["started_at"]))


def _common(fields: Mapping[str, str]) -> dict[str, Any]:
    """The attributes that both kinds of record have."""
    return {
        "workflow_run_id": fields["workflow_run_id"],
        "workflow_id": fields.get("workflow_id", ""),
        "stage_id": fields["stage_id"],
        "priority": int(fields["priority"]),
        "attempt": int(fields["attempt"]),
        "max_attempts": int(fields["max_attempts"]),
        "payload": _payload(fields),
        "definition_version": fields.get("definition_version"),
        "group_key": fields.get("group_key"),
    }


def _payload(fields: Mapping[str, str]) -> JsonObject:
    # A dead job's payload can be anything.
    return json.loads(fields["payload"]) if "workflow_id" in fields else {}


def _instant(text: str) -> datetime:
    return _EPOCH + int(text) * _MS


def _optional_instant(fields: Mapping[str, str], name: str) -> datetime | None:
    return _instant(fields[name]) if name in fields else None
