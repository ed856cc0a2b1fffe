"""The one JSON value that comes as an argument: the result of a command, which the adapter itself has to check."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.json_values import JsonValue
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import InProgress, Replay


def _nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


_REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "NaN": ({"items": [1, {"price": float("nan")}]}, "result.items[1].price"),
    "Infinity": ([float("inf")], "result[0]"),
    "-Infinity": (float("-inf"), "result"),
    "a key that is no text": ({"a": {1: 2}}, "result.a"),
    "a set": ([{1, 2}], "result[0]"),
    "a tuple": ({"a": (1, 2)}, "result.a"),
    "bytes": (b"bytes", "result"),
    "a Decimal": ([Decimal(1)], "result[0]"),
    "U+0000": ({"a": ["x\0y"]}, "result.a[0]"),
    "a lone surrogate": ({"a": "\ud800"}, "result.a"),
}
_REFUSED_SOMEWHERE: Final[dict[str, Any]] = {
    "257 levels": _nested(257),
    "an integer of 4,001 digits": 10**4_000,
    "U+0000 in a key": {"a\0b": 1},
    "a lone surrogate in a key": {"\udc00": 1},
}


@clause(
    "WP-JSON-10",
    MUST,
    text="What is no JSON value is refused with an error that names the argument and the path, and nothing is written.",
    why="One store writes NaN and can not read the row again; the next refuses it half-way through a command.",
    hints=["Walk the value before the first statement; json.dumps needs allow_nan=False and refuses too little."],
    after=["WP-IDEM-02"],
)
async def refused(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    for shown, (value, path) in _REFUSED.items():
        with ctx.raises(InvalidValueError, f"a result with {shown}", field="result", path=path):
            await ctx.adapter.complete_idempotency_key(key, "t", value)
    for shown, value in _REFUSED_SOMEWHERE.items():
        with ctx.raises(InvalidValueError, f"a result with {shown}", field="result"):
            await ctx.adapter.complete_idempotency_key(key, "t", value)
    ctx.expect("an acquire afterwards", await ctx.adapter.acquire_idempotency_key(key, "t")).equals(InProgress())


class _Text(str):
    __slots__ = ()


class _Number(int):
    pass


class _Items(list[Any]):
    pass


@clause(
    "WP-JSON-11",
    MUST,
    text="Subclasses of texts, numbers, arrays and objects are stored as what they are based on.",
    why="Enums and wrappers of libraries are everywhere in results; their repr in a row is read by nobody.",
    hints=["Take the base type's own value: str.__str__(value), int.__int__(value)."],
    after=["WP-IDEM-03"],
)
async def subclasses(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    value: JsonValue = {_Text("key"): _Items([_Text("text"), _Number(7)])}
    await ctx.adapter.complete_idempotency_key(key, "t", value)
    outcome = ctx.expect("the outcome", await ctx.adapter.acquire_idempotency_key(key, "t")).is_a(Replay)
    ctx.expect("the result", outcome.result).equals({"key": ["text", 7]})


@clause(
    "WP-JSON-12",
    MUST,
    text="Changing a value after it was handed over changes nothing that is stored, and -0.0 is stored as 0.0.",
    why="Hosts go on working with what they have answered.",
    hints=["Copy JSON on the way in.", "jsonb keeps no sign of zero; no adapter does."],
    after=["WP-IDEM-03"],
)
async def copied(ctx: Context[WorkflowPersistence]) -> None:
    key = ctx.new_id("key")
    await ctx.adapter.acquire_idempotency_key(key, "t")
    value: dict[str, JsonValue] = {"list": [1], "zero": -0.0}
    await ctx.adapter.complete_idempotency_key(key, "t", value)
    value["list"] = [2]
    value["new"] = True
    outcome = ctx.expect("the outcome", await ctx.adapter.acquire_idempotency_key(key, "t")).is_a(Replay)
    result = outcome.result if isinstance(outcome.result, dict) else {}
    ctx.expect("the result", result).equals({"list": [1], "zero": 0.0})
    ctx.expect("-0.0 as it is stored", str(result["zero"])).equals("0.0")
