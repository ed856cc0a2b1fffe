"""is_recorded: whether a batch has been stored."""

from __future__ import annotations

from typing import Any

from conformance.builders import call
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.ports.ai_call_logger import AICallLogger


def _result(request_id: str | None, tokens: int = 1, **fields: Any) -> CreateAICallInput:
    return call("batch", request_id=request_id, input_tokens=tokens, **fields)


@clause(
    "AI-RECORDED-01",
    MUST,
    text="is_recorded says whether any call of the batch is stored, by its batch id.",
    why="A poller that is told yes too early never fetches the results; too late, it fetches them again.",
    hints=["Plain equality with batch_id."],
    after=["AI-BATCH-01"],
)
async def recorded(ctx: Context[AICallLogger]) -> None:
    ctx.expect("before", await ctx.adapter.is_recorded("b_1")).is_false()
    await ctx.adapter.log_batch_results("b_1", [_result("r1")])
    ctx.expect("after", await ctx.adapter.is_recorded("b_1")).is_true()
    for other in ("b", "b_", "bX1", "B_1", "b%", "%"):
        ctx.expect(f"of {other!r}", await ctx.adapter.is_recorded(other)).is_false()


@clause(
    "AI-RECORDED-02",
    MUST,
    text="is_recorded sees a call that was logged before it through the same logger, by batch id.",
    why="A batch would be fetched again although its first result is logged.",
    hints=["Flush before reading."],
    after=["AI-LOG-01"],
)
async def sees_logged_calls(ctx: Context[AICallLogger]) -> None:
    ctx.adapter.log_call(call(batch_id="b", request_id="r1"))
    ctx.expect("is_recorded", await ctx.adapter.is_recorded("b")).is_true()


@clause(
    "AI-RECORDED-03",
    MUST,
    text="is_recorded also finds a batch by metadata.batchId of calls that have no batch id.",
    why="Rows written before the column existed would be fetched and paid for again.",
    hints=["batch_id = $1 OR metadata ->> 'batchId' = $1."],
    after=["AI-LOG-01"],
)
async def by_metadata(ctx: Context[AICallLogger]) -> None:
    ctx.adapter.log_call(call(metadata={"batchId": "old", "x": {"batchId": "nested"}}))
    ctx.expect("is_recorded", await ctx.adapter.is_recorded("old")).is_true()
    ctx.expect("is_recorded of a nested member", await ctx.adapter.is_recorded("nested")).is_false()


@clause(
    "AI-RECORDED-04",
    MUST,
    text="Storing no results records nothing.",
    why="An empty answer of a provider would mark the batch as done.",
    hints=["is_recorded is about rows."],
)
async def nothing(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [])
    ctx.expect("is_recorded", await ctx.adapter.is_recorded("b")).is_false()
