"""The rules of JSON values, one clause per rule and port, over all JSON columns of the port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from conformance.clause import MUST, Need
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.values import DEEP, FLOATS, INTEGERS, KEYS, PLAIN, SCALARS, TEXTS
from workflow_adapters.json_values import JsonObject, JsonValue

A = TypeVar("A")

Read: TypeAlias = Callable[[], Awaitable[JsonValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonColumn(Generic[A]):
    """One JSON column: `store` writes a value to a fresh row and returns what reads it back."""

    name: str
    store: Callable[[Context[A], Any], Awaitable[Read]]
    objects_only: bool = False
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Members:
    number: int
    values: JsonObject
    text: str
    why: str
    hint: str


_MEMBERS: Final = (
    _Members(
        number=1,
        values=PLAIN,
        text="JSON values come back as they were written: None, booleans, numbers, texts, arrays and objects, nested.",
        why="A payload that changes on its way runs the next stage on something else.",
        hint="1 is no True and no 1.0; an empty array is no empty object.",
    ),
    _Members(
        number=2,
        values=INTEGERS,
        text="Integers in JSON come back exactly, up to 4,000 digits.",
        why="Ids and amounts of other systems exceed 64 bits; a float in between changes their last digits.",
        hint="Store and read JSON text; the database's JSON functions and drivers turn large integers into floats.",
    ),
    _Members(
        number=3,
        values=FLOATS,
        text="Floats in JSON come back as the same floats, from 5e-324 to 1.8e308, whole ones as floats.",
        why="jsonb turns 1e23 into an integer that is not that float; sums and comparisons drift.",
        hint="Write repr() in full with a fraction part.",
    ),
    _Members(
        number=4,
        values=TEXTS,
        text="Texts in JSON come back character by character.",
        why="Output of models has every character there is; one that is lost or escaped twice corrupts the result.",
        hint="Bind JSON as UTF-8 text; escape nothing by hand.",
    ),
    _Members(
        number=5,
        values=KEYS,
        text="Keys of JSON objects come back character by character, the empty one included.",
        why="Stores that give dots, dollars or empty keys a meaning lose members without a word.",
        hint="Store the document as text where the store has opinions on keys.",
    ),
)


def register(port: str, columns: Sequence[JsonColumn[Any]], after: Sequence[str], needs: Sequence[Need] = ()) -> None:
    """Register the clauses ``port-JSON-01`` and following over these columns."""
    for members in _MEMBERS:
        _register_members(port, members, columns, after, needs)
    base = [f"{port}-JSON-01"]
    _register_deep(port, columns, base, needs)
    if nullable := [column for column in columns if column.nullable]:
        _register_none(port, nullable, base, needs)
    _register_copies(port, columns, base, needs)
    if documents := [column for column in columns if not column.objects_only]:
        _register_scalars(port, documents, base, needs)


def _object(ctx: Context[Any], name: str, value: JsonValue) -> JsonObject:
    return cast("JsonObject", ctx.expect(name, value).is_a(dict))


def _register_members(
    port: str, members: _Members, columns: Sequence[JsonColumn[Any]], after: Sequence[str], needs: Sequence[Need]
) -> None:
    async def trial(ctx: Context[Any]) -> None:
        for column in columns:
            read = await column.store(ctx, members.values)
            found = _object(ctx, column.name, await read())
            for name, value in members.values.items():
                ctx.expect(f"{column.name}, member {name!r}", found.get(name, "missing")).equals(value)
            ctx.expect(f"number of members of {column.name}", len(found)).equals(len(members.values))

    clause(
        f"{port}-JSON-{members.number:02}",
        MUST,
        text=members.text,
        why=members.why,
        hints=[members.hint],
        needs=needs,
        after=after if members.number == 1 else [f"{port}-JSON-01"],
    )(trial)


def _register_deep(port: str, columns: Sequence[JsonColumn[Any]], after: Sequence[str], needs: Sequence[Need]) -> None:
    @clause(
        f"{port}-JSON-06",
        MUST,
        text="JSON nested 256 levels deep is stored and comes back.",
        why="Trees of documents and of calls are deep; a limit that nobody knows of fails the run at its end.",
        hints=["Recursive encoders and drivers have limits of their own."],
        needs=needs,
        after=after,
    )
    async def deep(ctx: Context[Any]) -> None:
        for column in columns:
            read = await column.store(ctx, DEEP)
            ctx.expect(column.name, await read()).equals(DEEP)


def _register_none(port: str, columns: Sequence[JsonColumn[Any]], after: Sequence[str], needs: Sequence[Need]) -> None:
    @clause(
        f"{port}-JSON-07",
        MUST,
        text="A JSON column that holds None reads back None.",
        why="A result that is null is a result; a text 'null' or an error in its place is not.",
        hints=["Read SQL NULL and JSON null alike."],
        needs=needs,
        after=after,
    )
    async def none(ctx: Context[Any]) -> None:
        for column in columns:
            read = await column.store(ctx, None)
            ctx.expect(column.name, await read()).is_none()


def _register_copies(
    port: str, columns: Sequence[JsonColumn[Any]], after: Sequence[str], needs: Sequence[Need]
) -> None:
    @clause(
        f"{port}-JSON-08",
        MUST,
        text="Changing a JSON value that was read changes nothing that is stored.",
        why="Handlers change what they are given; the next reader would see another's scratch work.",
        hints=["An adapter that keeps rows in memory copies JSON on the way in and on the way out."],
        needs=needs,
        after=after,
    )
    async def copies(ctx: Context[Any]) -> None:
        for column in columns:
            read = await column.store(ctx, {"list": [1], "object": {"a": 1}})
            found = _object(ctx, column.name, await read())
            cast("list[JsonValue]", found["list"]).append(2)
            cast("JsonObject", found["object"])["b"] = 2
            found["new"] = True
            again = await read()
            ctx.expect(f"{column.name} after the change", again).equals({"list": [1], "object": {"a": 1}})


def _register_scalars(
    port: str, columns: Sequence[JsonColumn[Any]], after: Sequence[str], needs: Sequence[Need]
) -> None:
    @clause(
        f"{port}-JSON-09",
        MUST,
        text="A JSON column holds any JSON value, not objects alone: booleans, numbers, texts, arrays, empty ones too.",
        why="A stage may answer with a number; a falsy value that reads as None looks like no answer.",
        hints=["Test for None, not for truth.", "A top-level text is stored as JSON: with its quotes."],
        needs=needs,
        after=after,
    )
    async def scalars(ctx: Context[Any]) -> None:
        for column in columns:
            for value in SCALARS:
                read = await column.store(ctx, value)
                ctx.expect(column.name, await read()).equals(value)
