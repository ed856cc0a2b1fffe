"""Texts, names, numbers and JSON of logged calls; calls that are cancelled."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final

from conformance.builders import call
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.interruption import Call, Ending, Look, cancel_everywhere
from conformance.suites.json_columns import JsonColumn, JsonFamily, Read
from conformance.suites.values import GOOD_KEYS, STRINGS, UNSTORABLE_TEXTS
from workflow_adapters.json_values import JsonObject, JsonValue
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsListCalls

_LIST: Final = (SupportsListCalls,)


@clause(
    "AI-TEXT-02",
    MUST,
    text="Prompts and responses are stored character by character; U+0000 and lone surrogates become U+FFFD.",
    why="Models answer with every character there is; the log must not fail for it, nor change it.",
    hints=["No length limit; bind as text."],
    needs=_LIST,
    after=["AI-LOG-02"],
)
async def any_text(ctx: Context[AICallLogger]) -> None:
    texts = {text: text for text in (*STRINGS.values(), "", "long " * 200_000)} | dict(UNSTORABLE_TEXTS.values())
    for given in texts:
        ctx.adapter.log_call(call(prompt=given, response=given))
    listed = await ctx.capability(SupportsListCalls).list_calls("")
    ctx.expect("calls", listed).has_length(len(texts))
    for one, kept in zip(listed, texts.values(), strict=True):
        ctx.expect("prompt", one.prompt).equals(kept)
        ctx.expect("response", one.response).equals(kept)


@clause(
    "AI-TEXT-03",
    MUST,
    text="Topics, call types, model keys and ids are any texts up to 800 bytes, and come back as they are.",
    why="Names of models and topics come from elsewhere; two that are folded into one share their costs.",
    hints=["Bind values; no collation that folds case or accents."],
    needs=_LIST,
    after=["AI-LOG-02", "AI-STATS-01"],
)
async def any_name(ctx: Context[AICallLogger]) -> None:
    for name in GOOD_KEYS:
        fields: dict[str, Any] = {
            "call_type": name,
            "model_key": name,
            "model_id": name,
            "batch_id": name,
            "request_id": name,
        }
        ctx.adapter.log_call(call(name, **fields))
    listed = await ctx.capability(SupportsListCalls).list_calls("")
    found = [(one.topic, one.call_type, one.model_key, one.model_id, one.batch_id, one.request_id) for one in listed]
    ctx.expect("names", found).equals([(name,) * 6 for name in GOOD_KEYS])
    ctx.expect("models in the sums", set((await ctx.adapter.get_stats("")).per_model)).equals(set(GOOD_KEYS))


@clause(
    "AI-INT-01",
    MUST,
    text="Costs come back as the same floats, and tokens exactly up to the end of 32 bits.",
    why="A single-precision column is off by dollars at scale.",
    hints=["Double precision; 32-bit integers or wider."],
    needs=_LIST,
    after=["AI-LOG-02"],
)
async def numbers(ctx: Context[AICallLogger]) -> None:
    costs = (0.1, 0.1 + 0.2, 1e-12, 123456789.123456789, 1e300, -2.5)
    most = 2**31 - 1
    for cost in costs:
        tokens: dict[str, Any] = {"input_tokens": most, "cached_input_tokens": most, "reasoning_tokens": most}
        ctx.adapter.log_call(call(cost=cost, estimated_cost=cost, reported_cost=cost, **tokens))
    for one, cost in zip(await ctx.capability(SupportsListCalls).list_calls(""), costs, strict=True):
        ctx.expect("costs", (one.cost, one.estimated_cost, one.reported_cost)).equals((cost,) * 3)
        ctx.expect("tokens", (one.input_tokens, one.cached_input_tokens, one.reasoning_tokens)).equals((most,) * 3)


async def _metadata(ctx: Context[AICallLogger], value: Any) -> Read:
    topic = ctx.new_id("topic")
    ctx.adapter.log_call(call(topic, metadata=value))

    async def read() -> JsonValue:
        listed = await ctx.capability(SupportsListCalls).list_calls(topic)
        return ctx.expect("calls", listed).has_length(1)[0].metadata

    return read


async def _metadata_of_a_result(ctx: Context[AICallLogger], value: JsonObject) -> Read:
    topic = ctx.new_id("topic")
    await ctx.adapter.log_batch_results(topic, [call(topic, metadata=value)])

    async def read() -> JsonValue:
        listed = await ctx.capability(SupportsListCalls).list_calls(topic)
        metadata = ctx.expect("calls", listed).has_length(1)[0].metadata or {}
        return {name: member for name, member in metadata.items() if name != "batchId"}

    return read


JsonFamily(
    prefix="AI-JSON",
    columns=[
        JsonColumn(name="metadata of a call", store=_metadata, objects_only=True),
        JsonColumn(name="metadata of a batch's result", store=_metadata_of_a_result, objects_only=True, nullable=False),
    ],
    after=["AI-LOG-02", "AI-BATCH-08"],
    needs=_LIST,
).register()


@clause(
    "AI-CANCELLATION-01",
    MUST,
    text="Cancelling log_batch_results anywhere stores all results or none, and leaves the logger usable.",
    why="A poller that is stopped half-way must find out by is_recorded whether to fetch again.",
    hints=["One owner for the span from BEGIN to COMMIT; its end is shielded."],
    after=["AI-BATCH-02"],
    time_limit=timedelta(seconds=20),
)
async def cancelled(ctx: Context[AICallLogger]) -> None:
    async def trial() -> tuple[Call, Look]:
        topic = ctx.new_id("topic")
        results = [call(topic, request_id=f"r{number}") for number in range(3)]

        async def look(ending: Ending) -> None:
            found = (await ctx.adapter.get_stats(topic)).total_calls
            ctx.expect(f"results, by {ending.by}", found).is_one_of(3, *([] if ending.came_back else [0]))
            await ctx.adapter.log_batch_results(topic, results)
            ctx.expect("results afterwards", (await ctx.adapter.get_stats(topic)).total_calls).equals(3)

        return partial(ctx.adapter.log_batch_results, topic, results), look

    await cancel_everywhere(trial)


@clause(
    "AI-CANCELLATION-02",
    MUST,
    text="Cancelling a read anywhere loses no call that was logged before it, and leaves the logger usable.",
    why="A read flushes; one that is cut off must not take the buffer with it.",
    hints=["A batch that is being written belongs to the writer, not to whoever waits for it."],
    after=["AI-LOG-01"],
    time_limit=timedelta(seconds=20),
)
async def cancelled_read(ctx: Context[AICallLogger]) -> None:
    async def trial() -> tuple[Call, Look]:
        topic = ctx.new_id("topic")
        for _ in range(3):
            ctx.adapter.log_call(call(topic))

        async def look(ending: Ending) -> None:
            found = (await ctx.adapter.get_stats(topic)).total_calls
            ctx.expect(f"calls, by {ending.by}", found).equals(3)

        return partial(ctx.adapter.get_stats, topic), look

    await cancel_everywhere(trial)
