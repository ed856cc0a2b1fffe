"""How a stored job payload is read: the reserved members, dead jobs, and the fairness group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workflow_adapters.inputs.job_queue import (
    DEFINITION_VERSION_MEMBER,
    GROUP_KEY_MEMBER,
    RESERVED_MEMBERS,
    WORKFLOW_ID_MEMBER,
)
from workflow_adapters.inputs.runs import ServedDefinition
from workflow_adapters.json_values import JsonObject, JsonValue, dumps


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPayload:
    """A stored payload taken apart; `workflow_id` is "" for a dead job."""

    payload: JsonObject
    workflow_id: str
    definition_version: str | None
    group_key: str | None


def read_payload(stored: JsonValue) -> StoredPayload:
    """Take the reserved members out of a stored payload. A dead one reads as {}, whatever it holds."""
    if not isinstance(stored, dict):
        return StoredPayload(payload={}, workflow_id="", definition_version=None, group_key=None)
    workflow_id = _text(stored.get(WORKFLOW_ID_MEMBER))
    members = {name: value for name, value in stored.items() if name not in RESERVED_MEMBERS}
    return StoredPayload(
        payload={} if workflow_id is None else members,
        workflow_id=workflow_id or "",
        definition_version=_text(stored.get(DEFINITION_VERSION_MEMBER)),
        group_key=_text(stored.get(GROUP_KEY_MEMBER)),
    )


def dead_reason(stored: JsonValue) -> str | None:
    """Why no worker could run this payload, or None when one can."""
    if stored is None:
        return "dead job: payload is null"
    if not isinstance(stored, dict):
        return "dead job: payload is not a JSON object"
    if not isinstance(stored.get(WORKFLOW_ID_MEMBER), str):
        return f"dead job: payload has no string {WORKFLOW_ID_MEMBER}"
    return None


def is_served(workflow_id: str, version: str | None, serves: Sequence[ServedDefinition] | None) -> bool:
    """A pinned row needs its very (workflow, version) pair; an unpinned one only its workflow; None serves anything."""
    if serves is None:
        return True
    return any(s.workflow_id == workflow_id and version in (None, s.version) for s in serves)


def group_of(stored: JsonValue, path: Sequence[str]) -> str:
    """The fairness group: the text at `path`, else the text at `_groupKey`, else ""."""
    found = _scalar_text(_at(stored, path))
    if found is None:
        found = _scalar_text(_at(stored, (GROUP_KEY_MEMBER,)))
    return found or ""


def _at(value: JsonValue, path: Sequence[str]) -> JsonValue:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _scalar_text(value: JsonValue) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else dumps(value)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
