"""Inputs for workflow_runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias, cast

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.json_values import JsonValue, json_value
from workflow_adapters.records.status import PURGEABLE_STATUSES, Status
from workflow_adapters.unset import UNSET, Unset
from workflow_adapters.validation import (
    finite,
    instance,
    instant,
    int32,
    key,
    member,
    non_negative,
    normalise,
    optional,
    sequence,
)

DEFAULT_PRIORITY: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRunInput:
    """A new run. Without `id` one is generated; a `definition_version` pins the run to that version."""

    workflow_id: str
    workflow_name: str
    workflow_type: str
    input: JsonValue
    id: str | None = None
    config: JsonValue = field(default_factory=dict[str, JsonValue])
    priority: int = DEFAULT_PRIORITY
    metadata: JsonValue = None
    definition_version: str | None = None

    def __post_init__(self) -> None:
        normalise(
            self,
            workflow_id=key,
            workflow_name=key,
            workflow_type=key,
            input=json_value,
            id=optional(key),
            config=json_value,
            priority=int32,
            metadata=json_value,
            definition_version=optional(key),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRunInput:
    """A patch: a field left out (UNSET) keeps its column, any other value is written.

    `duration` is in milliseconds. `expected_version` is compared, not written.
    """

    status: Status | Unset = UNSET
    started_at: datetime | None | Unset = UNSET
    completed_at: datetime | None | Unset = UNSET
    duration: int | None | Unset = UNSET
    output: JsonValue | Unset = UNSET
    total_cost: float | Unset = UNSET
    total_tokens: int | Unset = UNSET
    definition_version: str | None | Unset = UNSET
    redrive_count: int | Unset = UNSET
    expected_version: int | Unset = UNSET

    def __post_init__(self) -> None:
        normalise(
            self,
            status=member(Status),
            started_at=optional(instant),
            completed_at=optional(instant),
            duration=optional(non_negative),
            output=json_value,
            total_cost=finite,
            total_tokens=non_negative,
            definition_version=optional(key),
            redrive_count=non_negative,
            expected_version=int32,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDefinition:
    """A definition version that the caller can run."""

    workflow_id: str
    version: str

    def __post_init__(self) -> None:
        normalise(self, workflow_id=key, version=key)


Serves: TypeAlias = Sequence[ServedDefinition] | Literal["all"] | None
"""What a claimer can run: definition versions ([] claims nothing), or None / "all" for anything."""


def serves(field: str, value: object) -> tuple[ServedDefinition, ...] | None:
    """Check a `Serves`; None stands for any."""
    if value is None or value == "all":
        return None
    return cast("tuple[ServedDefinition, ...]", sequence(instance(ServedDefinition))(field, value))


def purgeable_statuses(field: str, value: object) -> tuple[Status, ...]:
    """Check the statuses of a purge listing: only runs that have ended may be purged."""
    statuses = cast("tuple[Status, ...]", sequence(member(Status))(field, value))
    for index, status in enumerate(statuses):
        if status not in PURGEABLE_STATUSES:
            allowed = ", ".join(sorted(PURGEABLE_STATUSES))
            raise InvalidValueError(field, f"{field}[{index}]", f"{status} is not purgeable; use {allowed}")
    return statuses
