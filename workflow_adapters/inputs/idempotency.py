"""Checks for idempotency_keys."""

from __future__ import annotations

from typing import Final

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.json_values import JsonObject, JsonValue, json_value

IN_PROGRESS_MEMBER: Final = "__workflowEngineState"
IN_PROGRESS_MARKER: Final[JsonObject] = {IN_PROGRESS_MEMBER: "in_progress"}
"""Stored in `result` while a key is in progress; exactly this document, because the engine compares the whole of it."""


def is_in_progress(result: JsonValue) -> bool:
    """Whether a stored result is the in-progress marker: an object with that member, as the engine reads it."""
    return isinstance(result, dict) and result.get(IN_PROGRESS_MEMBER) == "in_progress"


def idempotency_result(field: str, value: object) -> JsonValue:
    """Check a command's result: any JSON but what reads as the in-progress marker."""
    result = json_value(field, value)
    if isinstance(result, dict) and IN_PROGRESS_MEMBER in result:
        raise InvalidValueError(field, f"{field}.{IN_PROGRESS_MEMBER}", "is the in-progress marker; rename the member")
    return result
