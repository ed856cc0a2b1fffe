"""Inputs for workflow_annotations."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from workflow_adapters.json_values import JsonValue, json_value
from workflow_adapters.unset import UNSET, Unset
from workflow_adapters.validation import (
    boolean,
    instance,
    instant,
    int32,
    key,
    non_negative,
    normalise,
    optional,
    prefix,
)

DEFAULT_ANNOTATION_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationActor:
    """Who made an annotation."""

    kind: str | None = None
    id: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        normalise(self, kind=optional(key), id=optional(key), version=optional(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAnnotationInput:
    """An annotation. `emit_event` is a hint for the host: it is not stored and the adapter ignores it."""

    workflow_run_id: str
    scope: str
    key: str
    value: JsonValue
    workflow_stage_record_id: str | None = None
    attempt: int = 0
    scope_id: str | None = None
    actor: AnnotationActor = field(default_factory=AnnotationActor)
    payload: JsonValue = None
    idempotency_key: str | None = None
    emit_event: bool = False

    def __post_init__(self) -> None:
        if self.actor is None:  # pyright: ignore[reportUnnecessaryComparison]  # the contract says `actor?`: None is "no actor"
            object.__setattr__(self, "actor", AnnotationActor())
        normalise(
            self,
            workflow_run_id=key,
            scope=key,
            key=key,
            value=json_value,
            workflow_stage_record_id=optional(key),
            attempt=int32,
            scope_id=optional(key),
            actor=instance(AnnotationActor),
            payload=json_value,
            idempotency_key=optional(key),
            emit_event=boolean,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationFilters:
    """All given filters hold (AND). UNSET is no filter; None is "is null" where the column may be null, else no filter.

    `since` and `until` are inclusive; `key` wins over `key_prefix`, which is literal and case-sensitive.
    """

    key: str | None | Unset = UNSET
    key_prefix: str | None | Unset = UNSET
    scope: str | None | Unset = UNSET
    scope_id: str | None | Unset = UNSET
    actor_id: str | None | Unset = UNSET
    actor_kind: str | None | Unset = UNSET
    attempt: int | None | Unset = UNSET
    since: datetime | None | Unset = UNSET
    until: datetime | None | Unset = UNSET
    limit: int = DEFAULT_ANNOTATION_LIMIT

    def __post_init__(self) -> None:
        for name in ("key", "key_prefix", "scope", "attempt", "since", "until"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, UNSET)
        normalise(
            self,
            key=key,
            key_prefix=prefix,
            scope=key,
            scope_id=optional(key),
            actor_id=optional(key),
            actor_kind=optional(key),
            attempt=int32,
            since=instant,
            until=instant,
            limit=non_negative,
        )
