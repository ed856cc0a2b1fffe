"""log_batch_results and is_recorded: the results of a provider's batch, each once."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final

from conformance.builders import call
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.values import ALIKE
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.json_values import JsonObject
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsListCalls
from workflow_adapters.records.ai_call_logger import AICallRecord

_LIST: Final = (SupportsListCalls,)


def _result(request_id: str | None, tokens: int = 1, **fields: Any) -> CreateAICallInput:
    return call("batch", request_id=request_id, input_tokens=tokens, **fields)


async def _totals(ctx: Context[AICallLogger]) -> tuple[int, int]:
    stats = await ctx.adapter.get_stats("batch")
    return stats.total_calls, stats.total_input_tokens


async def _listed(ctx: Context[AICallLogger]) -> list[AICallRecord]:
    return await ctx.capability(SupportsListCalls).list_calls("batch")


@clause(
    "AI-BATCH-01",
    MUST,
    text="log_batch_results stores its results; they are there when it returns.",
    why="The poller marks the batch as done right after.",
    hints=["Written in the call, not left to the buffer."],
)
async def stored(ctx: Context[AICallLogger]) -> None:
    other = await ctx.second()
    await ctx.adapter.log_batch_results("b", [_result("r1", 1), _result("r2", 2)])
    stats = await other.get_stats("batch")
    ctx.expect("calls and tokens", (stats.total_calls, stats.total_input_tokens)).equals((2, 3))


@clause(
    "AI-BATCH-02",
    MUST,
    text="A result whose batch and request are stored already is skipped; the others of the call are stored.",
    why="Two pollers, or a retry after a lost reply, would double the costs; or half a batch could not be completed.",
    hints=["A unique key on (batch_id, request_id), ON CONFLICT DO NOTHING."],
    after=["AI-BATCH-01"],
)
async def across_calls(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [_result("r1", 1)])
    await ctx.adapter.log_batch_results("b", [_result("r1", 100), _result("r2", 2)])
    ctx.expect("calls and tokens", await _totals(ctx)).equals((2, 3))


@clause(
    "AI-BATCH-03",
    MUST,
    text="Of results in one call with one request the first is stored.",
    why="A provider that repeats a line makes the whole batch fail, or be counted twice.",
    hints=["ON CONFLICT DO NOTHING also within the statement; an upsert keeps the last."],
    after=["AI-BATCH-01"],
)
async def inside_a_call(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [_result("r1", 1), _result("r1", 10), _result("r1", 100)])
    ctx.expect("calls and tokens", await _totals(ctx)).equals((1, 1))


@clause(
    "AI-BATCH-04",
    MUST,
    text="One request id in two batches is two results.",
    why="Providers number requests from one in each batch.",
    hints=["The unique key is the pair."],
    after=["AI-BATCH-02"],
)
async def the_pair_is_the_key(ctx: Context[AICallLogger]) -> None:
    for batch_id in ("b1", "b2"):
        await ctx.adapter.log_batch_results(batch_id, [_result("r1")])
    ctx.expect("calls and tokens", await _totals(ctx)).equals((2, 2))
    for batch_id, request_id in ALIKE:
        await ctx.adapter.log_batch_results(batch_id, [_result(request_id)])
    many = 2 + len(ALIKE)
    ctx.expect("calls and tokens with pairs that look alike", await _totals(ctx)).equals((many, many))


@clause(
    "AI-BATCH-05",
    MUST,
    text="Where a result has no request id, metadata.requestId is the one.",
    why="Hosts of the older contract keep it there; their batches would be counted twice.",
    hints=["request_id, else metadata['requestId'] where that is a text."],
    after=["AI-BATCH-02"],
)
async def request_id_in_metadata(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [_result(None, 1, metadata={"requestId": "r1"}), _result("r1", 10)])
    await ctx.adapter.log_batch_results("b", [_result(None, 100, metadata={"requestId": "r1"})])
    ctx.expect("calls and tokens", await _totals(ctx)).equals((1, 1))


@clause(
    "AI-BATCH-12",
    MUST,
    text="A request id that is given counts, whatever metadata.requestId says.",
    why="Two results that share a note in their metadata would be merged into one.",
    hints=["The field first, the metadata as the fallback."],
    after=["AI-BATCH-05"],
)
async def the_field_comes_first(ctx: Context[AICallLogger]) -> None:
    metadata: JsonObject = {"requestId": "same"}
    results = [_result("r1", 1, metadata=metadata), _result("r2", 10, metadata=metadata), _result("same", 100)]
    await ctx.adapter.log_batch_results("b", results)
    ctx.expect("calls and tokens", await _totals(ctx)).equals((3, 111))


@clause(
    "AI-BATCH-06",
    MUST,
    text="Results without any request id are always stored, and never merged.",
    why="Calls that nobody numbered are still calls that were paid for.",
    hints=["NULL is no key: two of them do not conflict."],
    after=["AI-BATCH-01"],
)
async def without_request_id(ctx: Context[AICallLogger]) -> None:
    for _ in range(2):
        await ctx.adapter.log_batch_results("b", [_result(None), _result(None, metadata={"x": 1})])
    ctx.expect("calls and tokens", await _totals(ctx)).equals((4, 4))


@clause(
    "AI-BATCH-07",
    MUST,
    text="The batch id of the call wins over that of the results.",
    why="A result that names another batch would be found under neither, or escape deduplication.",
    hints=["Replace the field before anything else."],
    after=["AI-BATCH-02"],
)
async def the_argument_wins(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [_result("r1", 1, batch_id="other")])
    await ctx.adapter.log_batch_results("b", [_result("r1", 10)])
    ctx.expect("calls and tokens", await _totals(ctx)).equals((1, 1))
    ctx.expect("is_recorded of the argument's batch", await ctx.adapter.is_recorded("b")).is_true()
    ctx.expect("is_recorded of the field's batch", await ctx.adapter.is_recorded("other")).is_false()


@clause(
    "AI-BATCH-08",
    MUST,
    text="batchId and requestId are stamped into the metadata of a result, beside what is there.",
    why="Hosts of the older contract look for them there.",
    hints=["A result without metadata gets an object with the two."],
    needs=_LIST,
    after=["AI-BATCH-01"],
)
async def stamped_into_metadata(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [_result("r1", metadata={"kept": 1}), _result("r2")])
    found = {one.request_id: one.metadata for one in await _listed(ctx)}
    ctx.expect("metadata of r1", found.get("r1")).equals({"kept": 1, "batchId": "b", "requestId": "r1"})
    ctx.expect("metadata of r2", found.get("r2")).equals({"batchId": "b", "requestId": "r2"})
    ctx.expect("batch_id", {one.batch_id for one in await _listed(ctx)}).equals({"b"})


@clause(
    "AI-BATCH-09",
    MUST,
    text="Pollers that store one batch at once store each result once, and none of them fails.",
    why="The guard 'recorded? no, then insert' lets both in: costs double.",
    hints=["The unique key decides; lock rows in one order so that two batches do not deadlock."],
    after=["AI-BATCH-02"],
    time_limit=timedelta(seconds=20),
)
async def racing(ctx: Context[AICallLogger]) -> None:
    loggers = await ctx.instances(3) * 2
    # Long texts, which cost a store more than the caller: it is still at work on each call when the others begin.
    text = " ".join(str(ctx.random.random()) for _ in range(400))
    results = [_result(f"r{number}", response=text) for number in range(100)]
    orders = [results if place % 2 else results[::-1] for place in range(len(loggers))]
    for batch in "abcd":
        await ctx.together(
            *(partial(logger.log_batch_results, batch, given) for logger, given in zip(loggers, orders, strict=True))
        )
    ctx.expect("calls and tokens", await _totals(ctx)).equals((400, 400))


@clause(
    "AI-BATCH-10",
    MUST,
    text="One call stores 2,500 results.",
    why="Batches are large; databases limit the parameters of a statement.",
    hints=["Pass arrays, or work in chunks inside one transaction."],
    after=["AI-BATCH-01"],
    time_limit=timedelta(seconds=20),
)
async def large(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [_result(f"r{number}") for number in range(2_500)])
    ctx.expect("calls and tokens", await _totals(ctx)).equals((2_500, 2_500))


@clause(
    "AI-BATCH-11",
    MUST,
    text="log_batch_results is one transaction: another adapter sees none of its results or all of them.",
    why="is_recorded would say yes to a batch of which half is missing.",
    hints=["One statement, or one transaction around the chunks."],
    after=["AI-BATCH-01"],
    time_limit=timedelta(seconds=20),
)
async def all_or_nothing(ctx: Context[AICallLogger]) -> None:
    other = await ctx.second()
    seen: set[int] = set()

    async def log() -> None:
        await ctx.adapter.log_batch_results("b", [_result(f"r{number}") for number in range(300)])

    async def look() -> None:
        for _ in range(20):
            seen.add((await other.get_stats("batch")).total_calls)

    await ctx.together(log, look)
    seen.add((await other.get_stats("batch")).total_calls)
    ctx.expect("numbers of results that were seen", seen - {0}).equals({300})
