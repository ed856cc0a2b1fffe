"""Enumerations that more than one table uses."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """Status of runs, stages and jobs."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"


TERMINAL_STATUSES: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.SKIPPED})
PURGEABLE_STATUSES: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class LogLevel(StrEnum):
    """Level of a workflow log row."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class ArtifactType(StrEnum):
    """What an artifact is."""

    STAGE_OUTPUT = "STAGE_OUTPUT"
    ARTIFACT = "ARTIFACT"
    METADATA = "METADATA"


class StepKind(StrEnum):
    """What a durable step does."""

    RUN = "run"
    WAIT = "wait"
    SIGNAL = "signal"
    SLEEP = "sleep"


class StepStatus(StrEnum):
    """Status of a durable step."""

    RUNNING = "running"
    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"


class JobAckOutcome(StrEnum):
    """Answer of a fenced acknowledgement: written, or refused because the claim is another's by now."""

    ACKNOWLEDGED = "acknowledged"
    SUPERSEDED = "superseded"
