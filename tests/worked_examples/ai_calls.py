"""Worked examples for the AI call logger."""

from __future__ import annotations

from tests.worked_examples.examples import MINUTE, START, Pair, World, call, example
from workflow_adapters import ModelStats


@example("log_call", "sync; reads see what was logged before them")
async def log_then_read(w: World) -> Pair:
    answer = w.logger.log_call(call(cost=0.25, metadata={"a": 1}))
    [found] = await w.logger.list_calls("")
    observed = (answer, found.topic, found.cost, found.metadata, found.created_at, found.estimated_cost)
    return observed, (None, "t", 0.25, {"a": 1}, START, None)


@example("log_call", "created_at is that of the log_call")
async def log_created_at(w: World) -> Pair:
    w.logger.log_call(call())
    w.clock.advance(MINUTE)
    [found] = await w.logger.list_calls("")
    return found.created_at, START


@example("log_call", "a call whose (batch_id, request_id) exists is skipped without harming the rest")
async def log_duplicate(w: World) -> Pair:
    w.logger.log_call(call(batch_id="b", request_id="r", cost=1.0))
    w.logger.log_call(call(batch_id="b", request_id="r", cost=2.0))
    w.logger.log_call(call(cost=3.0))
    return [c.cost for c in await w.logger.list_calls("")], [1.0, 3.0]


@example("log_batch_results", "deduplicated on (batch_id, request_id) across calls and inside one; the first wins")
async def batch_dedup(w: World) -> Pair:
    await w.logger.log_batch_results("b", [call(request_id="1", cost=1.0), call(request_id="1", cost=2.0)])
    await w.logger.log_batch_results("b", [call(request_id="1", cost=3.0), call(request_id="2", cost=4.0)])
    return [c.cost for c in await w.logger.list_calls("")], [1.0, 4.0]


@example("log_batch_results", "request_id falls back to metadata; without one always written, never merged")
async def batch_fallback(w: World) -> Pair:
    by_metadata = call(metadata={"requestId": "9"}, cost=1.0)
    await w.logger.log_batch_results("b", [by_metadata, by_metadata, call(cost=2.0), call(cost=2.0)])
    found = await w.logger.list_calls("")
    return [(c.request_id, c.cost) for c in found], [("9", 1.0), (None, 2.0), (None, 2.0)]


@example("log_batch_results", "the argument wins over the field; batchId and requestId are stamped into metadata")
async def batch_stamps(w: World) -> Pair:
    await w.logger.log_batch_results("b", [call(batch_id="other", request_id="1", metadata={"x": 1})])
    [found] = await w.logger.list_calls("")
    return (found.batch_id, found.metadata), ("b", {"x": 1, "batchId": "b", "requestId": "1"})


@example("get_stats", "sums are added exactly: 0.1 + 0.2 reads 0.3")
async def stats_exact(w: World) -> Pair:
    w.logger.log_call(call(cost=0.1))
    w.logger.log_call(call(cost=0.2, model_key="other", input_tokens=1))
    stats = await w.logger.get_stats("t")
    per_model = {
        "k": ModelStats(calls=1, input_tokens=10, output_tokens=5, cost=0.1),
        "other": ModelStats(calls=1, input_tokens=1, output_tokens=5, cost=0.2),
    }
    observed = (stats.total_calls, stats.total_input_tokens, stats.total_output_tokens, stats.total_cost)
    return (*observed, dict(stats.per_model)), (2, 11, 10, 0.3, per_model)


@example("get_stats", "Literal, case-sensitive prefix; an empty prefix matches all")
async def stats_prefix(w: World) -> Pair:
    for topic in ("a_b", "axb", "a%b", "a\\b", "A_b"):
        w.logger.log_call(call(topic))
    counts = [(await w.logger.get_stats(prefix)).total_calls for prefix in ("a_", "a\\", "a", "", "z")]
    return counts, [1, 1, 4, 5, 0]


@example("get_stats", "nothing logged: zeros")
async def stats_empty(w: World) -> Pair:
    stats = await w.logger.get_stats("")
    return (stats.total_calls, stats.total_cost, dict(stats.per_model)), (0, 0.0, {})


@example("is_recorded", "by the column")
async def recorded_column(w: World) -> Pair:
    await w.logger.log_batch_results("b", [call(request_id="1")])
    return (await w.logger.is_recorded("b"), await w.logger.is_recorded("c")), (True, False)


@example("is_recorded", "by metadata.batchId of rows written before the column existed")
async def recorded_metadata(w: World) -> Pair:
    w.logger.log_call(call(metadata={"batchId": "old"}))
    return await w.logger.is_recorded("old"), True


@example("is_recorded", "an empty log_batch_results records nothing")
async def recorded_empty(w: World) -> Pair:
    await w.logger.log_batch_results("b", [])
    return await w.logger.is_recorded("b"), False


@example("list_calls", "by created_at then insertion order")
async def list_order(w: World) -> Pair:
    for cost in (3.0, 1.0, 2.0):
        w.logger.log_call(call(cost=cost))
    return [c.cost for c in await w.logger.list_calls("t")], [3.0, 1.0, 2.0]


@example("list_calls", "a literal prefix")
async def list_prefix(w: World) -> Pair:
    w.logger.log_call(call("t_1"))
    w.logger.log_call(call("tx1"))
    return [c.topic for c in await w.logger.list_calls("t_")], ["t_1"]


@example("list_calls", "a figure that was not given stays None")
async def list_figures(w: World) -> Pair:
    w.logger.log_call(call(cached_input_tokens=0, reported_cost=0.5))
    [c] = await w.logger.list_calls("")
    return (c.cached_input_tokens, c.reasoning_tokens, c.reported_cost, c.cost_source), (0, None, 0.5, None)


@example("flush", "waits until everything logged so far is durable")
async def flush_durable(w: World) -> Pair:
    for _ in range(50):
        w.logger.log_call(call())
    await w.logger.flush()
    return len(await w.logger.list_calls("")), 50


@example("flush", "nothing logged: returns")
async def flush_empty(w: World) -> Pair:
    return await w.logger.flush(), None


@example("flush", "twice is harmless")
async def flush_twice(w: World) -> Pair:
    w.logger.log_call(call())
    await w.logger.flush()
    await w.logger.flush()
    return len(await w.logger.list_calls("")), 1
