"""ai_calls: the AICallLogger."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from workflow_adapters.ai_call_records import LoggedCalls, batch_results
from workflow_adapters.arguments import enforces
from workflow_adapters.exact_decimals import total_of
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsListCalls
from workflow_adapters.records.ai_call_logger import AICallRecord, AIHelperStats, ModelStats
from workflow_adapters.sql.columns import Kind
from workflow_adapters.sql.conditions import Conditions
from workflow_adapters.sql.database import Database, SqlPort
from workflow_adapters.sql.results import every
from workflow_adapters.sql.statement import Operation, Row, Statement
from workflow_adapters.sql.tables import AI_CALL

# Calls are many: what a column stores as it is, is not looked at one by one.
_FIELDS: Final = attrgetter(*(column.attribute for column in AI_CALL.columns))
_JSON: Final = [(at, column) for at, column in enumerate(AI_CALL.columns) if column.type.kind is Kind.JSON]


@enforces(AICallLogger, SupportsListCalls)
class SqlAICallLogger(SqlPort):
    def __init__(self, database: Database, calls: LoggedCalls) -> None:
        super().__init__(database)
        self._calls = calls

    def log_call(self, call: CreateAICallInput) -> None:
        self._calls.log(call)

    async def log_batch_results(self, batch_id: str, results: Sequence[CreateAICallInput]) -> None:
        await insert_ai_calls(self._database, batch_results(batch_id, results, self._database.now()))

    async def get_stats(self, topic_prefix: str) -> AIHelperStats:
        await self._calls.flush()
        where = Conditions(first=1)
        where.starts_with(AI_CALL["topic"], topic_prefix)

        def operation() -> Operation[AIHelperStats]:
            return _stats((yield from self._database.dialect.sum_ai_calls(where)))

        return await self._database.read(operation)

    async def is_recorded(self, batch_id: str) -> bool:
        await self._calls.flush()

        def operation() -> Operation[bool]:
            rows = yield self._database.dialect.is_recorded(batch_id)
            return bool(rows)

        return await self._database.read(operation)

    async def list_calls(self, topic_prefix: str) -> list[AICallRecord]:
        await self._calls.flush()
        where = Conditions(first=1)
        where.starts_with(AI_CALL["topic"], topic_prefix)
        statement = Statement(
            f"""
            SELECT @ai_call.columns
            FROM @ai_calls
            WHERE true{where.text}
            ORDER BY "createdAt", id COLLATE "C"
            """,
            tuple(where.args),
        )
        return await self._database.read(lambda: every(AI_CALL, statement))

    async def flush(self) -> None:
        await self._calls.flush()


async def insert_ai_calls(database: Database, calls: Sequence[AICallRecord]) -> None:
    """Store calls in order, all or nothing; one whose id or (batch_id, request_id) is stored already is skipped."""
    if not calls:
        return
    facts = await database.facts()
    rows = [_values(call) for call in calls]
    statements = database.dialect.insert_ai_calls(rows, call_costs=facts.call_costs)

    def operation() -> Operation[None]:
        for statement in statements:  # noqa: UP028 - an operation is sent rows, which a list's iterator can not take
            yield statement

    await database.write(operation, single=len(statements) == 1)


def _values(call: AICallRecord) -> tuple[Any, ...]:
    values = list(_FIELDS(call))
    for position, column in _JSON:
        values[position] = column.encode(values[position])
    return tuple(values)


def _stats(rows: Sequence[Row]) -> AIHelperStats:
    models = {
        str(model): ModelStats(
            calls=int(calls or 0),
            input_tokens=int(input_tokens or 0),
            output_tokens=int(output_tokens or 0),
            cost=float(str(cost)),
        )
        for model, calls, input_tokens, output_tokens, cost in rows
    }
    return AIHelperStats(
        total_calls=sum(model.calls for model in models.values()),
        total_input_tokens=sum(model.input_tokens for model in models.values()),
        total_output_tokens=sum(model.output_tokens for model in models.values()),
        total_cost=total_of(str(row[4]) for row in rows),
        per_model=models,
    )
