"""ai_calls: the AICallLogger."""

from __future__ import annotations

from collections.abc import Sequence

from workflow_adapters.ai_call_records import LoggedCalls, batch_results
from workflow_adapters.arguments import enforces
from workflow_adapters.exact_decimals import total_of
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.memory.adapter import MemoryAdapter
from workflow_adapters.memory.rows import detached
from workflow_adapters.memory.session import Session
from workflow_adapters.memory.tables import Tables
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsFlush, SupportsListCalls
from workflow_adapters.records.ai_call_logger import AICallRecord, AIHelperStats, ModelStats


@enforces(AICallLogger, SupportsListCalls, SupportsFlush)
class MemoryAICallLogger(MemoryAdapter):
    def __init__(self, session: Session, calls: LoggedCalls) -> None:
        super().__init__(session)
        self._calls = calls

    def log_call(self, call: CreateAICallInput) -> None:
        self._calls.log(call)

    async def log_batch_results(self, batch_id: str, results: Sequence[CreateAICallInput]) -> None:
        await write_calls(self._session, batch_results(batch_id, results, self._session.now()))

    async def get_stats(self, topic_prefix: str) -> AIHelperStats:
        await self._calls.flush()
        async with self._session.read() as tables:
            calls = _with_topic(tables, topic_prefix)
            by_model: dict[str, list[AICallRecord]] = {}
            for call in calls:
                by_model.setdefault(call.model_key, []).append(call)
            return AIHelperStats(
                total_calls=len(calls),
                total_input_tokens=sum(call.input_tokens for call in calls),
                total_output_tokens=sum(call.output_tokens for call in calls),
                total_cost=total_of(call.cost for call in calls),
                per_model={model: _model_stats(model_calls) for model, model_calls in sorted(by_model.items())},
            )

    async def is_recorded(self, batch_id: str) -> bool:
        await self._calls.flush()
        async with self._session.read() as tables:
            calls = tables.ai_calls
            return bool(calls.by_batch.count(batch_id) or calls.by_metadata_batch.count(batch_id))

    async def list_calls(self, topic_prefix: str) -> list[AICallRecord]:
        await self._calls.flush()
        async with self._session.read() as tables:
            return [detached(call) for call in _with_topic(tables, topic_prefix)]

    async def flush(self) -> None:
        await self._calls.flush()


async def write_calls(session: Session, calls: Sequence[AICallRecord]) -> None:
    """Store calls, but those whose (batch_id, request_id) is stored already. A call may be written again."""
    async with session.write() as tables:
        for call in calls:
            request = (call.batch_id, call.request_id)
            if None in request or tables.ai_calls.by_request.get(request) is None:
                tables.ai_calls.put(call)


def _with_topic(tables: Tables, prefix: str) -> list[AICallRecord]:
    return [call for call in tables.ai_calls.by_age.iterate(True) if call.topic.startswith(prefix)]


def _model_stats(calls: Sequence[AICallRecord]) -> ModelStats:
    return ModelStats(
        calls=len(calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        cost=total_of(call.cost for call in calls),
    )
