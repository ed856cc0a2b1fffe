"""Filters of the operations protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workflow_adapters.errors import InvalidValueError
from workflow_adapters.records.status import Status
from workflow_adapters.unset import UNSET, Unset
from workflow_adapters.validation import int32, key, member, normalise, optional

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilters:
    """Runs to list. `definition_version` None means unpinned runs; left out, any."""

    status: Status | None | Unset = UNSET
    workflow_id: str | None | Unset = UNSET
    definition_version: str | None | Unset = UNSET

    def __post_init__(self) -> None:
        for name in ("status", "workflow_id"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, UNSET)
        normalise(self, status=member(Status), workflow_id=key, definition_version=optional(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilters:
    """Jobs to list."""

    status: Status | None | Unset = UNSET
    workflow_run_id: str | None | Unset = UNSET

    def __post_init__(self) -> None:
        for name in ("status", "workflow_run_id"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, UNSET)
        normalise(self, status=member(Status), workflow_run_id=key)


def page_limit(field: str, value: object) -> int:
    """Check the size of a page: 1 to 1,000."""
    limit = int32(field, value)
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidValueError(field, field, f"must be from 1 to {MAX_PAGE}")
    return limit
