"""Contract of idempotency_keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.idempotency import idempotency_result
from workflow_adapters.json_values import JsonValue
from workflow_adapters.records.idempotency import IdempotencyFence, IdempotencyOutcome
from workflow_adapters.records.status import JobAckOutcome
from workflow_adapters.validation import instant, key, non_negative_span, optional, parts

_fence = optional(parts(IdempotencyFence, id=key, acquired_at=instant))


class Idempotency(Protocol):
    """Idempotency keys, scoped by (key, command_type)."""

    @checked(key=key, command_type=key, now=optional(instant), stale_in_progress_after=optional(non_negative_span))
    async def acquire_idempotency_key(
        self,
        key: str,
        command_type: str,
        now: datetime | None = None,
        stale_in_progress_after: timedelta | None = None,
    ) -> IdempotencyOutcome:
        """Take the key (Acquired), or learn what it answered (Replay) or that somebody holds it (InProgress).

        Exactly one of any number of racing callers acquires. A key in progress is reclaimed only if
        `stale_in_progress_after` is given and its age at `now` is at least that; the reclaim restarts its clock. A
        completed key is never reclaimed.
        """
        ...

    @checked(key=key, command_type=key, result=idempotency_result, fence=_fence)
    async def complete_idempotency_key(
        self, key: str, command_type: str, result: JsonValue, fence: IdempotencyFence | None = None
    ) -> JobAckOutcome:
        """Store the result for replays.

        With a fence: only if this very acquisition still holds the key in progress, else nothing is written and
        SUPERSEDED returned (a missing key too). Without: whoever holds it; NotFoundError when the key does not exist.
        """
        ...

    @checked(key=key, command_type=key, fence=_fence)
    async def release_idempotency_key(
        self, key: str, command_type: str, fence: IdempotencyFence | None = None
    ) -> JobAckOutcome:
        """Give a key in progress back, so that the command can run again.

        With a fence: only this very acquisition, else SUPERSEDED. Without: whoever holds it; a completed or unknown
        key is left alone and ACKNOWLEDGED returned.
        """
        ...
