"""Names and types of what `open_adapters` and the other opening functions take by keyword.

Each backend's own function (`open_memory`, `open_sqlite`) or settings (`PostgresSettings`) has the defaults, and says
what an option is for. Left out is the default, and so is None where it is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from workflow_adapters.clock import Clock
from workflow_adapters.inputs.job_queue import JobQueueFairness, RetryBackoff

if TYPE_CHECKING:
    from workflow_adapters.memory.store import MemoryStore

Durability: TypeAlias = Literal["full", "normal"]


class CommonOptions(TypedDict, total=False):
    """Options of every backend."""

    clock: Clock | None
    worker_id: str | None
    fairness: JobQueueFairness | None
    backoff: RetryBackoff | None


class MemoryOptions(CommonOptions, total=False):
    """What `open_memory` takes."""

    store: MemoryStore | None
    busy_timeout: timedelta


class SqliteOptions(CommonOptions, total=False):
    """What `open_sqlite` takes besides the path."""

    durability: Durability
    busy_timeout: timedelta
    readers: int


class PostgresOptions(CommonOptions, total=False):
    """What `open_postgres` takes besides the DSN or pool."""

    schema: str
    status_enum: str
    pgbouncer: bool
    wake_ups: bool
    poll_interval: timedelta
    application_name: str
    max_connections: int
    max_idle: timedelta
    acquire_timeout: timedelta
    connect_timeout: timedelta
    statement_timeout: timedelta
    idle_in_transaction_timeout: timedelta
    close_timeout: timedelta
    migrate_timeout: timedelta
    connect: Mapping[str, Any]


class AdapterOptions(MemoryOptions, SqliteOptions, PostgresOptions, total=False):
    """What `open_adapters` takes besides the URL: the options of the backend that the URL names, and no others."""
