"""Answers of acquire_idempotency_key; made for ``match``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from workflow_adapters.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyFence:
    """Names one acquisition for ever: the row's id and the instant of the acquisition."""

    id: str
    acquired_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    """The key is ours: run the command, then complete or release it with the fence."""

    fence: IdempotencyFence


@dataclass(frozen=True, slots=True)
class Replay:
    """The command has completed before; this is what it answered (None is an answer)."""

    result: JsonValue


@dataclass(frozen=True, slots=True)
class InProgress:
    """Somebody else holds the key."""


IdempotencyOutcome: TypeAlias = Acquired | Replay | InProgress
