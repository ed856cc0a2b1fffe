"""How logged calls become rows, the same on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol, Self

from workflow_adapters.ids import new_id
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.json_values import JsonObject, json_object
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.validation import instance, key

BATCH_ID_MEMBER: Final = "batchId"
REQUEST_ID_MEMBER: Final = "requestId"
_check_call = instance(CreateAICallInput)


class LoggedCall(NamedTuple):
    """A call as log_call takes it: cheap to make in the caller; its row is made when it is written."""

    id: str
    created_at: datetime
    call: CreateAICallInput
    metadata: JsonObject | None

    @classmethod
    def of(cls, call: CreateAICallInput, now: datetime) -> Self:
        """The call with the id and the instant of this moment; the caller's metadata is copied."""
        _check_call("call", call)
        metadata = None if call.metadata is None else json_object("metadata", call.metadata)
        return cls(new_id(), now, call, metadata)

    @property
    def row(self) -> AICallRecord:
        return _row(self.id, self.created_at, self.call, self.call.batch_id, self.call.request_id, self.metadata)


class LoggedCalls(Protocol):
    """Where log_call leaves its calls until they are written: of a bundle, or of one transaction."""

    def log(self, call: CreateAICallInput) -> None: ...

    async def flush(self) -> None: ...


def batch_results(batch_id: str, results: Sequence[CreateAICallInput], now: datetime) -> list[AICallRecord]:
    """The rows of log_batch_results: ids stamped into the metadata, each request once (the first wins)."""
    rows: list[AICallRecord] = []
    seen: set[str] = set()
    for index, result in enumerate(results):
        request_id = _request_id(index, result)
        if request_id is not None:
            if request_id in seen:
                continue
            seen.add(request_id)
        rows.append(_row(new_id(), now, result, batch_id, request_id, _stamped(result, batch_id, request_id)))
    return rows


def _request_id(index: int, result: CreateAICallInput) -> str | None:
    fallback = (result.metadata or {}).get(REQUEST_ID_MEMBER)
    if result.request_id is not None or not isinstance(fallback, str):
        return result.request_id
    return key(f"results[{index}].metadata.{REQUEST_ID_MEMBER}", fallback)


def _stamped(result: CreateAICallInput, batch_id: str, request_id: str | None) -> JsonObject:
    metadata = json_object("metadata", result.metadata or {})
    metadata[BATCH_ID_MEMBER] = batch_id
    if request_id is not None:
        metadata[REQUEST_ID_MEMBER] = request_id
    return metadata


def _row(
    id: str,
    created_at: datetime,
    call: CreateAICallInput,
    batch_id: str | None,
    request_id: str | None,
    metadata: JsonObject | None,
) -> AICallRecord:
    return AICallRecord(
        id=id,
        created_at=created_at,
        topic=call.topic,
        call_type=call.call_type,
        model_key=call.model_key,
        model_id=call.model_id,
        prompt=call.prompt,
        response=call.response,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cost=call.cost,
        estimated_cost=call.estimated_cost,
        reported_cost=call.reported_cost,
        cost_source=call.cost_source,
        served_by=call.served_by,
        cached_input_tokens=call.cached_input_tokens,
        reasoning_tokens=call.reasoning_tokens,
        batch_id=batch_id,
        request_id=request_id,
        metadata=metadata,
    )
