"""Answers of the operations protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from workflow_adapters.records.status import Status

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """Jobs by status (every status has an entry), the oldest due PENDING job and the oldest live lease.

    `oldest_due_at` is when the job that has been due longest became due: next_poll_at, or created_at without one.
    """

    by_status: Mapping[Status, int]
    oldest_due_at: datetime | None
    oldest_locked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxStats:
    """Unpublished: neither published, leased nor dead. `oldest_unpublished_at` is their oldest occurred_at."""

    unpublished: int
    oldest_unpublished_at: datetime | None
    leased: int
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page of a listing; hand `next` to the next call's `after`, None at the end."""

    items: tuple[T, ...]
    next: str | None
