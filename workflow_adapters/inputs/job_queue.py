"""Inputs and options of the job queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.runs import DEFAULT_PRIORITY
from workflow_adapters.json_values import JsonObject, json_object
from workflow_adapters.validation import finite, instant, int32, key, non_negative_span, normalise, optional, positive

DEFAULT_MAX_ATTEMPTS: Final = 3
DEFAULT_STALE_AFTER: Final = timedelta(minutes=5)
LEASE_HEARTBEAT_LOST: Final = "LEASE_HEARTBEAT_LOST"
LEASE_ABSOLUTE_CAP: Final = "LEASE_ABSOLUTE_CAP"

WORKFLOW_ID_MEMBER: Final = "_workflowId"
GROUP_KEY_MEMBER: Final = "_groupKey"
DEFINITION_VERSION_MEMBER: Final = "_definitionVersion"
RESERVED_MEMBERS: Final = (WORKFLOW_ID_MEMBER, GROUP_KEY_MEMBER, DEFINITION_VERSION_MEMBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueJobInput:
    """A job for one stage of a run. Without `scheduled_for` it is due at once."""

    workflow_run_id: str
    workflow_id: str
    stage_id: str
    priority: int = DEFAULT_PRIORITY
    payload: JsonObject | None = None
    scheduled_for: datetime | None = None
    group_key: str | None = None
    definition_version: str | None = None

    def __post_init__(self) -> None:
        normalise(
            self,
            workflow_run_id=key,
            workflow_id=key,
            stage_id=key,
            priority=int32,
            payload=optional(_payload),
            scheduled_for=optional(instant),
            group_key=optional(key),
            definition_version=optional(key),
        )

    @property
    def stored_payload(self) -> JsonObject:
        """The payload as stored: the caller's members and the reserved ones."""
        stored: JsonObject = {**(self.payload or {}), WORKFLOW_ID_MEMBER: self.workflow_id}
        if self.group_key is not None:
            stored[GROUP_KEY_MEMBER] = self.group_key
        if self.definition_version is not None:
            stored[DEFINITION_VERSION_MEMBER] = self.definition_version
        return stored


def _payload(field: str, value: object) -> JsonObject:
    payload = json_object(field, value)
    for member in RESERVED_MEMBERS:
        if member in payload:
            raise InvalidValueError(field, f"{field}.{member}", "is reserved; use the input's own field")
    return payload


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQueueFairness:
    """A cap, not a reordering: a group that holds `max_concurrent_per_group` RUNNING jobs is left out of the claim.

    `group_by` is a dotted path into the payload; see `workflow_adapters.payloads.group_of` for what the text at it is.
    """

    max_concurrent_per_group: int
    group_by: str = GROUP_KEY_MEMBER

    def __post_init__(self) -> None:
        normalise(self, max_concurrent_per_group=positive, group_by=key)
        if "" in self.group_by.split("."):
            raise InvalidValueError("group_by", "group_by", "has an empty part; write it as 'a.b.c'")

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.group_by.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryBackoff:
    """Delay before a failed job is due again: base * factor**attempt, at most cap."""

    base: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        normalise(self, base=non_negative_span, factor=finite, cap=non_negative_span)
        if self.factor < 1:
            raise InvalidValueError("factor", "factor", "must be at least 1")

    @property
    def base_ms(self) -> int:
        return self.base // timedelta(milliseconds=1)

    @property
    def cap_ms(self) -> int:
        return self.cap // timedelta(milliseconds=1)

    def delay_ms(self, attempt: int) -> int:
        """Milliseconds to wait after `attempt` (1 for the first) has failed; large attempts give the cap."""
        if self.base_ms == 0:
            return 0
        try:
            return int(min(self.base_ms * self.factor**attempt, self.cap_ms))
        except OverflowError:
            return self.cap_ms
