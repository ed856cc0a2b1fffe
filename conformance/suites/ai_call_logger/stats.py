"""get_stats and list_calls: sums and prefixes."""

from __future__ import annotations

from typing import Any, Final

from conformance.builders import call
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsListCalls
from workflow_adapters.records.ai_call_logger import AIHelperStats, ModelStats

_TOPICS: Final = ("a_b", "axb", "a%b", "aXXb", "a\\b", "a\\", "A_b", "b_a", "a*b", "a[x]b", "\u00e9t\u00e9")
_PREFIXES: Final = ("a_", "a%", "a\\", "a", "A", "a*", "a[", "a_b", "a_bc", "", "%", "\u00e9", "e")


@clause(
    "AI-STATS-01",
    MUST,
    text="get_stats sums calls, tokens and costs, in all and for each model key.",
    why="Budgets are enforced on it; calls of two models that are mixed hide which one is dear.",
    hints=["Group by model_key, not by model_id."],
    after=["AI-LOG-01"],
)
async def sums(ctx: Context[AICallLogger]) -> None:
    rows = (("small", "x", 1, 2, 0.25), ("large", "x", 10, 20, 1.5), ("small", "y", 100, 200, 0.5))
    for model_key, model_id, tokens_in, tokens_out, cost in rows:
        fields: dict[str, Any] = {
            "model_id": model_id,
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "cost": cost,
        }
        ctx.adapter.log_call(call(model_key=model_key, **fields))
    stats = await ctx.adapter.get_stats("")
    totals = (stats.total_calls, stats.total_input_tokens, stats.total_output_tokens, stats.total_cost)
    ctx.expect("totals", totals).equals((3, 111, 222, 2.25))
    expected = {
        "small": ModelStats(calls=2, input_tokens=101, output_tokens=202, cost=0.75),
        "large": ModelStats(calls=1, input_tokens=10, output_tokens=20, cost=1.5),
    }
    ctx.expect("per_model", dict(stats.per_model)).equals(expected)


@clause(
    "AI-STATS-02",
    MUST,
    text="Without a matching call every sum is zero, and there is no model.",
    why="NULL for a sum of nothing breaks the first report of every new topic.",
    hints=["COALESCE the sums; the cost is the float 0.0."],
    after=["AI-LOG-01"],
)
async def no_calls(ctx: Context[AICallLogger]) -> None:
    ctx.adapter.log_call(call("other"))
    stats = await ctx.adapter.get_stats("none")
    expected = AIHelperStats(
        total_calls=0, total_input_tokens=0, total_output_tokens=0, total_cost=0.0, per_model=stats.per_model
    )
    ctx.expect("the sums", stats).equals(expected)
    ctx.expect("per_model", dict(stats.per_model)).is_empty()


@clause(
    "AI-STATS-03",
    MUST,
    text="A topic prefix is literal and has case: %, _ and \\ mean themselves, and the empty prefix matches all.",
    why="An underscore that matches anything counts other tenants' calls; a backslash fails or counts none.",
    hints=["starts_with or a range; LIKE needs escaping, and is case-insensitive in SQLite."],
    after=["AI-STATS-01"],
)
async def literal_prefix(ctx: Context[AICallLogger]) -> None:
    for topic in _TOPICS:
        ctx.adapter.log_call(call(topic))
    for prefix in _PREFIXES:
        expected = sum(topic.startswith(prefix) for topic in _TOPICS)
        found = (await ctx.adapter.get_stats(prefix)).total_calls
        ctx.expect(f"calls under the prefix {prefix!r}", found).equals(expected)


@clause(
    "AI-STATS-04",
    MUST,
    text="Costs are summed as decimals: 0.1 + 0.2 is 0.3, in all and per model.",
    why="Totals that differ from the sum of their parts in the last digit fail every comparison with a bill.",
    hints=["Sum the shortest decimal forms exactly and turn the sum into a float once."],
    after=["AI-STATS-01"],
)
async def decimal_sums(ctx: Context[AICallLogger]) -> None:
    for topic, costs, total in (("a", [0.1, 0.2], 0.3), ("b", [0.1] * 10, 1.0), ("c", [0.000123] * 300, 0.0369)):
        for cost in costs:
            ctx.adapter.log_call(call(topic, cost=cost))
        stats = await ctx.adapter.get_stats(topic)
        ctx.expect(f"total_cost of {len(costs)} calls", stats.total_cost).equals(total)
        ctx.expect("cost of the model", stats.per_model["small"].cost).equals(total)


@clause(
    "AI-STATS-05",
    MUST,
    text="The sum of costs does not depend on their order or size.",
    why="One large correction would swallow the small calls beside it, depending on the plan.",
    hints=["Exact decimal addition; no running float."],
    after=["AI-STATS-04"],
)
async def any_order(ctx: Context[AICallLogger]) -> None:
    costs = [1e16, 0.1, -1e16, 1e-9, 0.2, 123456789.123456789]
    for topic, ordered in (("up", sorted(costs)), ("down", sorted(costs, reverse=True)), ("as is", costs)):
        for cost in ordered:
            ctx.adapter.log_call(call(topic, cost=cost))
        total = (await ctx.adapter.get_stats(topic)).total_cost
        ctx.expect(f"total_cost, {topic}", total).equals(123456789.423456791)


@clause(
    "AI-STATS-06",
    MUST,
    text="Sums of tokens exceed 32 bits.",
    why="A busy topic passes two billion tokens in a week.",
    hints=["Sum as a 64-bit integer or larger; no float."],
    after=["AI-STATS-01"],
)
async def large_sums(ctx: Context[AICallLogger]) -> None:
    most = 2**31 - 1
    for _ in range(3):
        ctx.adapter.log_call(call(input_tokens=most, output_tokens=most))
    stats = await ctx.adapter.get_stats("")
    ctx.expect("tokens", (stats.total_input_tokens, stats.total_output_tokens)).equals((3 * most, 3 * most))


@clause(
    "AI-STATS-07",
    MUST,
    text="A topic prefix may be very long: it matches nothing, without an error.",
    why="Patterns have limits in some databases; a report must not fail on its input.",
    hints=["SQLite refuses LIKE patterns over 50,000 bytes."],
    after=["AI-STATS-02"],
)
async def long_prefix(ctx: Context[AICallLogger]) -> None:
    ctx.adapter.log_call(call("k"))
    ctx.expect("total_calls", (await ctx.adapter.get_stats("k" * 60_000)).total_calls).equals(0)


@clause(
    "AI-LIST-01",
    MUST,
    text="list_calls lists the calls whose topic begins with the literal prefix.",
    why="It shows what get_stats counts; two rules for one prefix can not be reconciled.",
    hints=["The same condition as in get_stats."],
    needs=[SupportsListCalls],
    after=["AI-STATS-03"],
)
async def listed(ctx: Context[AICallLogger]) -> None:
    for topic in _TOPICS:
        ctx.adapter.log_call(call(topic))
    for prefix in _PREFIXES:
        expected = [topic for topic in _TOPICS if topic.startswith(prefix)]
        found = [one.topic for one in await ctx.capability(SupportsListCalls).list_calls(prefix)]
        ctx.expect(f"topics under the prefix {prefix!r}", found).equals(expected)


@clause(
    "AI-TEXT-01",
    MUST,
    text="A prefix with U+0000 or a lone surrogate, and a batch id that is none, are refused.",
    why="Where one adapter refuses and another finds nothing, a host works on one database and fails on the next.",
    hints=["Raise InvalidValueError naming the argument, before the first statement."],
)
async def bad_arguments(ctx: Context[AICallLogger]) -> None:
    for bad in ("a\0b", "a\ud800b"):
        with ctx.raises(InvalidValueError, f"get_stats({bad!a})", field="topic_prefix"):
            await ctx.adapter.get_stats(bad)
    for bad in ("", "a\0b", "a\ud800b", "k" * 801):
        with ctx.raises(InvalidValueError, f"is_recorded({bad!a})", field="batch_id"):
            await ctx.adapter.is_recorded(bad)
        with ctx.raises(InvalidValueError, f"log_batch_results({bad!a})", field="batch_id"):
            await ctx.adapter.log_batch_results(bad, [call()])
