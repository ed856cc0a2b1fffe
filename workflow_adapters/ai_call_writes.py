"""Writing logged calls so that one bad row harms no other, and no trouble is taken for a bad row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from workflow_adapters.errors import BackendError, ConfigurationError, OutcomeUnknownError, SchemaError, UsageError
from workflow_adapters.records.ai_call_logger import AICallRecord

WriteBatch: TypeAlias = Callable[[Sequence[AICallRecord]], Awaitable[None]]
"""Stores calls in order, all or nothing. One whose id or (batch_id, request_id) is stored already is skipped, so that a
batch may be written again after an outcome that nobody knows."""


class Refusal(NamedTuple):
    """A call that the backend will never store."""

    row: AICallRecord
    error: Exception


async def write_apart(write: WriteBatch, batch: Sequence[AICallRecord]) -> list[Refusal]:
    """Write a batch so that a call which the backend refuses does not harm the others.

    Returns the refusals, one for each call that was left out. Raises when no call could be tried (`_is_outage`), and
    may then be repeated.
    """
    if not batch:
        return []
    try:
        await write(batch)
    except Exception as error:  # a bad row is the backend's word against one call, whatever error it takes
        if _is_outage(error):
            raise
        if len(batch) == 1:
            return [Refusal(batch[0], error)]
    else:
        return []
    middle = len(batch) // 2
    return [*await write_apart(write, batch[:middle]), *await write_apart(write, batch[middle:])]


def _is_outage(error: Exception) -> bool:
    """Whether the error is about the database, the moment or the place, and so says nothing about any call."""
    if isinstance(error, UsageError | ConfigurationError | SchemaError | OutcomeUnknownError):
        return True
    return isinstance(error, BackendError) and error.retryable
