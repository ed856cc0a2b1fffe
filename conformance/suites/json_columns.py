"""The rules of JSON values, one clause per rule, over all JSON columns of a port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from conformance.clause import DEFAULT_TIME_LIMIT, MUST, TIME_LIMIT_OF_MANY_CALLS, Need
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.values import DEEP, FLOATS, INTEGERS, KEYS, PLAIN, SCALARS, TEXTS
from workflow_adapters.json_values import JsonObject, JsonValue

A = TypeVar("A")

Read: TypeAlias = Callable[[], Awaitable[JsonValue]]
Trial: TypeAlias = Callable[[Context[Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonColumn(Generic[A]):
    """One JSON column: `store` writes a value to a fresh row and returns what reads it back."""

    name: str
    store: Callable[[Context[A], Any], Awaitable[Read]]
    objects_only: bool = False
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Members:
    """A rule that is tried with the members of one object."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFamily:
    """Columns that are held to the rules together, under the ids ``prefix-01`` and following."""

    prefix: str
    columns: Sequence[JsonColumn[Any]]
    after: Sequence[str]
    needs: Sequence[Need] = ()

    def register(self) -> None:
        for members in _MEMBERS:
            self._members(members)
        self._deep()
        self._copies()
        if nullable := [column for column in self.columns if column.nullable]:
            self._none(nullable)
        if documents := [column for column in self.columns if not column.objects_only]:
            self._scalars(documents)

    def _members(self, members: _Members) -> None:
        async def trial(ctx: Context[Any]) -> None:
            for column in self.columns:
                read = await column.store(ctx, members.values)
                found = _object(ctx, column.name, await read())
                for name, value in members.values.items():
                    ctx.expect(f"{column.name}, member {name!r}", found.get(name, "missing")).equals(value)
                ctx.expect(f"number of members of {column.name}", len(found)).equals(len(members.values))

        self._clause(members.number, members.text, members.why, members.hint)(trial)

    def _deep(self) -> None:
        @self._clause(
            6,
            "JSON nested 256 levels deep is stored and comes back.",
            "Trees of documents and of calls are deep; a limit that nobody knows of fails the run at its end.",
            "Recursive encoders and drivers have limits of their own.",
        )
        async def deep(ctx: Context[Any]) -> None:
            for column in self.columns:
                read = await column.store(ctx, DEEP)
                ctx.expect(column.name, await read()).equals(DEEP)

    def _none(self, columns: Sequence[JsonColumn[Any]]) -> None:
        @self._clause(
            7,
            "A JSON column that holds None reads back None.",
            "A result that is null is a result; a text 'null' or an error in its place is not.",
            "Read SQL NULL and JSON null alike.",
        )
        async def none(ctx: Context[Any]) -> None:
            for column in columns:
                read = await column.store(ctx, None)
                ctx.expect(column.name, await read()).is_none()

    def _copies(self) -> None:
        @self._clause(
            8,
            "Changing a JSON value that was read changes nothing that is stored.",
            "Handlers change what they are given; the next reader would see another's scratch work.",
            "An adapter that keeps rows in memory copies JSON on the way in and on the way out.",
        )
        async def copies(ctx: Context[Any]) -> None:
            for column in self.columns:
                read = await column.store(ctx, {"list": [1], "object": {"a": 1}})
                found = _object(ctx, column.name, await read())
                cast("list[JsonValue]", found["list"]).append(2)
                cast("JsonObject", found["object"])["b"] = 2
                found["new"] = True
                again = await read()
                ctx.expect(f"{column.name} after the change", again).equals({"list": [1], "object": {"a": 1}})

    def _scalars(self, columns: Sequence[JsonColumn[Any]]) -> None:
        @self._clause(
            9,
            "A JSON column holds any JSON value, not objects alone: booleans, numbers, texts, arrays, empty ones too.",
            "A stage may answer with a number; a falsy value that reads as None looks like no answer.",
            "Test for None, not for truth. A top-level text is stored as JSON: with its quotes.",
            TIME_LIMIT_OF_MANY_CALLS,
        )
        async def scalars(ctx: Context[Any]) -> None:
            for column in columns:
                for value in SCALARS:
                    read = await column.store(ctx, value)
                    ctx.expect(column.name, await read()).equals(value)

    def _clause(
        self, number: int, text: str, why: str, hint: str, time_limit: timedelta = DEFAULT_TIME_LIMIT
    ) -> Callable[[Trial], Trial]:
        return clause(
            f"{self.prefix}-{number:02}",
            MUST,
            text=text,
            why=why,
            hints=[hint],
            needs=self.needs,
            after=self.after if number == 1 else [f"{self.prefix}-01"],
            time_limit=time_limit,
        )


def _object(ctx: Context[Any], name: str, value: JsonValue) -> JsonObject:
    return cast("JsonObject", ctx.expect(name, value).is_a(dict))
