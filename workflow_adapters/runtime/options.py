"""Names and types of what `run_workflow_service` and its loops take by keyword; each says what its options are for.

`WorkerOptions` is beside the worker's settings.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypedDict

from workflow_adapters.clock import Clock
from workflow_adapters.runtime.outbox_relay import Sink
from workflow_adapters.runtime.purger import Retention
from workflow_adapters.runtime.settings import WorkerOptions


class ReaperOptions(TypedDict, total=False):
    """What a `Reaper` takes."""

    stale_after: timedelta
    absolute_timeout: timedelta | None
    fail_spent: bool
    every: timedelta


class RelayOptions(TypedDict, total=False):
    """What an `OutboxRelay` takes."""

    batch: int
    lease: timedelta
    max_attempts: int
    every: timedelta


class PurgerOptions(TypedDict, total=False):
    """What a `Purger` takes."""

    batch: int
    every: timedelta
    clock: Clock | None


class ServiceOptions(TypedDict, total=False):
    """What `run_workflow_service` takes; `ServiceSettings` says what each is for."""

    sink: Sink | None
    retention: Retention | None
    migrate: bool
    worker: WorkerOptions
    reaper: ReaperOptions
    relay: RelayOptions
    purger: PurgerOptions
