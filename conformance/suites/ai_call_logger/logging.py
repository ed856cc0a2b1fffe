"""log_call: taking calls in the background."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread

from conformance.builders import call
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.ports.ai_call_logger import AICallLogger, SupportsListCalls
from workflow_adapters.records.ai_call_logger import AICallRecord

_LIST: Final = (SupportsListCalls,)

_FIGURES: Final = (
    "estimated_cost",
    "reported_cost",
    "cost_source",
    "served_by",
    "cached_input_tokens",
    "reasoning_tokens",
    "batch_id",
    "request_id",
    "metadata",
)


async def _listed(ctx: Context[AICallLogger], prefix: str = "") -> list[AICallRecord]:
    return await ctx.capability(SupportsListCalls).list_calls(prefix)


@clause(
    "AI-LOG-01",
    MUST,
    text="log_call is synchronous, returns nothing, and the call counts in what is read afterwards.",
    why="A handler logs between two statements; what it logged and then asks for must be there.",
    hints=["Reads flush the buffer first."],
)
async def counted(ctx: Context[AICallLogger]) -> None:
    ctx.expect("log_call", ctx.adapter.log_call(call(input_tokens=3))).is_none()
    ctx.adapter.log_call(call(input_tokens=4))
    stats = await ctx.adapter.get_stats("")
    ctx.expect("total_calls", stats.total_calls).equals(2)
    ctx.expect("total_input_tokens", stats.total_input_tokens).equals(7)
    # A buffer that is written in the background may be quicker than one read.
    for number in range(3, 25):
        ctx.adapter.log_call(call())
        ctx.expect("total_calls", (await ctx.adapter.get_stats("")).total_calls).equals(number)


@clause(
    "AI-LOG-02",
    MUST,
    text="A call keeps every field that it was logged with.",
    why="Bills are checked, and prompts are debugged, against these rows.",
    hints=["Compare the insert's column list with CreateAICallInput, field by field."],
    needs=_LIST,
    after=["AI-LOG-01"],
)
async def every_field(ctx: Context[AICallLogger]) -> None:
    fields: dict[str, Any] = {
        "topic": "flow.build",
        "call_type": "object",
        "model_key": "large",
        "model_id": "vendor/large-2",
        "prompt": "Say two words.",
        "response": "Two words.",
        "input_tokens": 11,
        "output_tokens": 12,
        "cost": 0.25,
        "estimated_cost": 0.5,
        "reported_cost": 0.125,
        "cost_source": "provider",
        "served_by": "region-2",
        "cached_input_tokens": 4,
        "reasoning_tokens": 5,
        "batch_id": "batch",
        "request_id": "request",
        "metadata": {"m": [1]},
    }
    ctx.adapter.log_call(call(**fields))
    (stored,) = ctx.expect("calls", await _listed(ctx)).has_length(1)
    for name, value in fields.items():
        if name != "metadata":
            ctx.expect(name, getattr(stored, name)).equals(value)
    ctx.expect("metadata", (stored.metadata or {}).get("m")).equals([1])


@clause(
    "AI-LOG-03",
    MUST,
    text="A figure that was not given reads None, never a guess.",
    why="A zero that nobody has measured makes costs look known.",
    hints=["Store NULL; no default in the column."],
    needs=_LIST,
    after=["AI-LOG-01"],
)
async def no_guesses(ctx: Context[AICallLogger]) -> None:
    ctx.adapter.log_call(call())
    (stored,) = ctx.expect("calls", await _listed(ctx)).has_length(1)
    for name in _FIGURES:
        ctx.expect(name, getattr(stored, name)).is_none()


@clause(
    "AI-LOG-04",
    MUST,
    text="A figure of zero reads zero.",
    why="A call that was free is not one whose cost is unknown.",
    hints=["Test for None, not for truth."],
    needs=_LIST,
    after=["AI-LOG-03"],
)
async def zero_is_a_figure(ctx: Context[AICallLogger]) -> None:
    zeros: dict[str, Any] = {
        "cost": 0.0,
        "estimated_cost": 0.0,
        "reported_cost": 0.0,
        "cached_input_tokens": 0,
        "reasoning_tokens": 0,
        "input_tokens": 0,
        "output_tokens": 0,
    }
    ctx.adapter.log_call(call(prompt="", response="", **zeros))
    (stored,) = ctx.expect("calls", await _listed(ctx)).has_length(1)
    for name, value in zeros.items():
        ctx.expect(name, getattr(stored, name)).equals(value)
    ctx.expect("prompt and response", (stored.prompt, stored.response)).equals(("", ""))


@clause(
    "AI-LOG-05",
    MUST,
    text="created_at of a call is the instant at which it was logged, not that at which it was written.",
    why="Calls of a burst would all bear the time of the flush, and stand in the wrong place of the timeline.",
    hints=["Stamp the call in log_call."],
    needs=(SupportsListCalls, Requires("clock", "caller")),
    after=["AI-LOG-01"],
)
async def stamped_when_logged(ctx: Context[AICallLogger]) -> None:
    at = ctx.now()
    ctx.adapter.log_call(call())
    await ctx.advance(timedelta(minutes=5))
    (stored,) = ctx.expect("calls", await _listed(ctx)).has_length(1)
    ctx.expect("created_at", stored.created_at).equals(at)


@clause(
    "AI-LOG-06",
    MUST,
    text="Calls are listed by created_at, then in the order in which they were logged.",
    why="A conversation that is read in another order makes no sense.",
    hints=["ORDER BY created_at, id; ids are given in log_call and grow."],
    needs=_LIST,
    after=["AI-LOG-01"],
)
async def order(ctx: Context[AICallLogger]) -> None:
    for number in range(25):
        ctx.adapter.log_call(call(prompt=str(number)))
        if number % 10 == 0:
            await ctx.advance(timedelta(seconds=1))
    await ctx.advance(timedelta(hours=-1))
    ctx.adapter.log_call(call(prompt="early"))
    listed = [one.prompt for one in await _listed(ctx)]
    ctx.expect("prompts", listed).equals(["early", *(str(number) for number in range(25))])


@clause(
    "AI-LOG-07",
    MUST,
    text="Calls that are logged from other threads are taken like any other, none of them lost.",
    why="Blocking SDKs run in threads; an error or a lost row there goes unnoticed.",
    hints=["Guard the buffer with a lock; wake the loop by call_soon_threadsafe."],
    after=["AI-LOG-01"],
)
async def from_threads(ctx: Context[AICallLogger]) -> None:
    def log() -> None:
        for _ in range(50):
            ctx.adapter.log_call(call())

    await ctx.together(*(partial(anyio.to_thread.run_sync, log) for _ in range(4)))
    ctx.expect("total_calls", (await ctx.adapter.get_stats("")).total_calls).equals(200)


@clause(
    "AI-LOG-08",
    MUST,
    text="A burst of 2,000 calls is written whole.",
    why="A buffer that overflows at the first burst loses the costs of exactly the busy moments.",
    hints=["Write in batches; the bound of the buffer is for outages."],
    after=["AI-LOG-01"],
    time_limit=timedelta(seconds=20),
)
async def burst(ctx: Context[AICallLogger]) -> None:
    for _ in range(2_000):
        ctx.adapter.log_call(call())
    ctx.expect("total_calls", (await ctx.adapter.get_stats("")).total_calls).equals(2_000)


@clause(
    "AI-LOG-09",
    MUST,
    text="A logged call whose batch and request are stored already is skipped, and the rest of its burst is written.",
    why="One duplicate would make the whole buffer fail, again and again.",
    hints=["ON CONFLICT DO NOTHING per row; bad rows are isolated from good ones."],
    after=["AI-LOG-01", "AI-BATCH-01"],
)
async def known_request(ctx: Context[AICallLogger]) -> None:
    await ctx.adapter.log_batch_results("b", [call("t", request_id="r1", input_tokens=1)])
    for request_id in ("r0", "r1", "r2", "r2"):
        ctx.adapter.log_call(call("t", batch_id="b", request_id=request_id, input_tokens=10))
    stats = await ctx.adapter.get_stats("t")
    ctx.expect("total_calls", stats.total_calls).equals(3)
    ctx.expect("total_input_tokens", stats.total_input_tokens).equals(21)
