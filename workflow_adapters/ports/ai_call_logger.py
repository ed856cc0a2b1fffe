"""Contract of the AICallLogger port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from workflow_adapters.arguments import checked
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.records.ai_call_logger import AICallRecord, AIHelperStats
from workflow_adapters.validation import instance, key, prefix, sequence


@runtime_checkable
class AICallLogger(Protocol):
    """Calls of models with their tokens and costs. Reads see what was logged before them through the same logger."""

    def log_call(self, call: CreateAICallInput) -> None:
        """Take a call for writing in the background: synchronous, never blocks on I/O, never raises.

        Callable from any thread, with or without a running loop, and after close (counted as dropped). Calls wait in a
        bounded buffer and are written in batches, in order; what an outage drops is counted and logged. created_at and
        id are those of this moment. A call whose (batch_id, request_id) is stored already is skipped.
        """
        ...

    @checked(batch_id=key, results=sequence(instance(CreateAICallInput)))
    async def log_batch_results(self, batch_id: str, results: Sequence[CreateAICallInput]) -> None:
        """Store the results of a batch in one transaction, each (batch_id, request_id) once; the first wins.

        `batch_id` wins over the field of the results. request_id falls back to ``metadata["requestId"]``; results
        without one are always written. batchId and requestId are also stamped into the metadata.
        """
        ...

    @checked(topic_prefix=prefix)
    async def get_stats(self, topic_prefix: str) -> AIHelperStats:
        """Sums over the calls whose topic starts with the literal, case-sensitive prefix; "" matches all."""
        ...

    @checked(batch_id=key)
    async def is_recorded(self, batch_id: str) -> bool:
        """Whether any row carries the batch id, in its column or in ``metadata.batchId``."""
        ...


@runtime_checkable
class SupportsListCalls(Protocol):
    """Reading calls back."""

    @checked(topic_prefix=prefix)
    async def list_calls(self, topic_prefix: str) -> list[AICallRecord]:
        """Calls whose topic starts with the literal prefix, by created_at, then insertion order."""
        ...


@runtime_checkable
class SupportsFlush(Protocol):
    """Waiting for the buffer."""

    async def flush(self) -> None:
        """Wait until everything logged so far is durable (or counted as dropped)."""
        ...
