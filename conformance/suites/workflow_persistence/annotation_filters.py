"""list_annotations and its filters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from conformance.builders import annotation
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import MINUTE, MS
from workflow_adapters.inputs.annotations import AnnotationActor, AnnotationFilters
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence

_CLOCK: Final = Requires("clock", "caller")


async def _append(ctx: Context[WorkflowPersistence], **named: dict[str, Any]) -> str:
    """Append an annotation for each name, which is its value, to a new run."""
    run_id = await ctx.new_run()
    await ctx.adapter.append_annotations([annotation(run_id, value=name, **fields) for name, fields in named.items()])
    return run_id


async def _found(ctx: Context[WorkflowPersistence], run_id: str, **filters: Any) -> list[object]:
    return [one.value for one in await ctx.adapter.list_annotations(run_id, AnnotationFilters(**filters))]


@clause(
    "WP-FILTER-01",
    MUST,
    text="list_annotations lists those of the run, by created_at, then in the order in which they were appended.",
    why="The last word counts: in another order it is another one.",
    hints=["ORDER BY created_at, id, with ids that grow."],
    needs=[_CLOCK],
    after=["WP-ANN-01"],
)
async def order(ctx: Context[WorkflowPersistence]) -> None:
    run_id, other = await ctx.new_run(), await ctx.new_run()
    for batch in (["d", "a"], ["c", "b", "e"]):
        await ctx.adapter.append_annotations([annotation(run_id, value=value) for value in batch])
        await ctx.adapter.append_annotations([annotation(other, value="other")])
        await ctx.advance(MINUTE)
    await ctx.advance(-5 * MINUTE)
    await ctx.adapter.append_annotations([annotation(run_id, value="early")])
    in_order = ["early", "d", "a", "c", "b", "e"]
    ctx.expect("values", await _found(ctx, run_id)).equals(in_order)
    listed = await ctx.adapter.list_annotations(run_id)
    ctx.expect("values without filters", [one.value for one in listed]).equals(in_order)
    ctx.expect("annotations of an unknown run", await ctx.adapter.list_annotations(ctx.new_id("no-run"))).is_empty()


@clause(
    "WP-FILTER-02",
    MUST,
    text="A key selects annotations of exactly that key.",
    why="A verdict read from a neighbouring key is somebody else's verdict.",
    hints=["Plain equality."],
    after=["WP-ANN-01"],
)
async def key(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _append(ctx, a={"key": "a.b"}, b={"key": "a_b"}, c={"key": "A.B"}, d={"key": "a.b.c"})
    ctx.expect("values under a.b", await _found(ctx, run_id, key="a.b")).equals(["a"])


@clause(
    "WP-FILTER-03",
    MUST,
    text="A key prefix is literal and has case: %, _ and \\ mean themselves, and the empty prefix matches all.",
    why="An underscore that matches anything shows annotations of other topics; a backslash fails or hides them.",
    hints=["starts_with or a range; LIKE needs escaping, and is case-insensitive in SQLite."],
    after=["WP-ANN-01"],
)
async def key_prefix(ctx: Context[WorkflowPersistence]) -> None:
    keys = ("a_b", "axb", "a%b", "aXXb", "a\\b", "a\\", "A_b", "b_a", "a*b", "a[x]b")
    run_id = await _append(ctx, **{key: {"key": key} for key in keys})
    for prefix in ("a_", "a%", "a\\", "a", "A", "a*", "a[", "a_b", "a_bc", "", "%"):
        expected = [key for key in keys if key.startswith(prefix)]
        ctx.expect(f"values under the prefix {prefix!r}", await _found(ctx, run_id, key_prefix=prefix)).equals(expected)


@clause(
    "WP-FILTER-04",
    MUST,
    text="A key prefix may be very long: it matches nothing, without an error.",
    why="Patterns have limits in some databases; a filter made of user input must not fail.",
    hints=["SQLite refuses LIKE patterns over 50,000 bytes."],
    after=["WP-FILTER-03"],
)
async def long_prefix(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _append(ctx, a={})
    ctx.expect("values", await _found(ctx, run_id, key_prefix="k" * 60_000)).is_empty()


@clause(
    "WP-FILTER-05",
    MUST,
    text="Where both are given the key counts and the prefix does not.",
    why="A host that narrows a listing down to one key would get nothing.",
    hints=["Drop the prefix when there is a key."],
    after=["WP-FILTER-02", "WP-FILTER-03"],
)
async def key_wins(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _append(ctx, a={"key": "a"}, b={"key": "b"})
    ctx.expect("values", await _found(ctx, run_id, key="a", key_prefix="b")).equals(["a"])


@clause(
    "WP-FILTER-06",
    MUST,
    text="scope, scope_id, actor_id, actor_kind and attempt each select the annotations that have that value.",
    why="A filter that is dropped shows everything, and a decision is made on somebody else's note.",
    hints=["attempt 0 is a value: test for UNSET, not for truth."],
    after=["WP-ANN-01"],
)
async def each_filter(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _append(
        ctx,
        scope={"scope": "stage", "attempt": 9},
        scope_id={"scope_id": "build", "attempt": 9},
        actor_id={"actor": AnnotationActor(id="ada"), "attempt": 9},
        actor_kind={"actor": AnnotationActor(kind="human"), "attempt": 9},
        attempt={"attempt": 0},
    )
    given = {"scope": "stage", "scope_id": "build", "actor_id": "ada", "actor_kind": "human", "attempt": 0}
    for name, value in given.items():
        ctx.expect(f"values with {name}={value!r}", await _found(ctx, run_id, **{name: value})).equals([name])


@clause(
    "WP-FILTER-07",
    MUST,
    text="None selects what is null where the column may be null; elsewhere it is no filter.",
    why="The notes that belong to no scope could not be asked for, or None would hide everything.",
    hints=["IS NULL for scope_id, actor_id and actor_kind."],
    after=["WP-FILTER-06"],
)
async def none(ctx: Context[WorkflowPersistence]) -> None:
    actor = AnnotationActor(id="ada", kind="human")
    run_id = await _append(ctx, bare={}, full={"scope_id": "build", "actor": actor})
    for name in ("scope_id", "actor_id", "actor_kind"):
        ctx.expect(f"values with {name}=None", await _found(ctx, run_id, **{name: None})).equals(["bare"])
    for name in ("key", "key_prefix", "scope", "attempt", "since", "until"):
        ctx.expect(f"values with {name}=None", await _found(ctx, run_id, **{name: None})).equals(["bare", "full"])


@clause(
    "WP-FILTER-08",
    MUST,
    text="Several filters select what passes all of them.",
    why="OR shows too much, the last one alone too much as well.",
    hints=["AND."],
    after=["WP-FILTER-06"],
)
async def all_of_them(ctx: Context[WorkflowPersistence]) -> None:
    ada = AnnotationActor(id="ada")
    run_id = await _append(
        ctx,
        neither={"key": "x"},
        only_key={"key": "verdict.a"},
        only_actor={"key": "x", "actor": ada},
        both={"key": "verdict.b", "actor": ada},
    )
    ctx.expect("values", await _found(ctx, run_id, key_prefix="verdict.", actor_id="ada")).equals(["both"])


@clause(
    "WP-FILTER-09",
    MUST,
    text="since and until bound created_at, both ends included, cut off to the millisecond.",
    why="A host that reads on from the last stamp it saw misses notes, or never gets past one.",
    hints=["created_at >= since AND created_at <= until."],
    needs=[_CLOCK],
    after=["WP-FILTER-01"],
)
async def bounds(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    start = ctx.now()
    for value in ("a", "b", "c"):
        await ctx.adapter.append_annotations([annotation(run_id, value=value)])
        await ctx.advance(MINUTE)
    second = start + MINUTE
    ctx.expect("values since b", await _found(ctx, run_id, since=second)).equals(["b", "c"])
    ctx.expect("values until b", await _found(ctx, run_id, until=second)).equals(["a", "b"])
    ctx.expect("values at b", await _found(ctx, run_id, since=second, until=second)).equals(["b"])
    ctx.expect("values since after b", await _found(ctx, run_id, since=second + MS)).equals(["c"])
    finer = second + timedelta(microseconds=999)
    ctx.expect("values since b, given more finely", await _found(ctx, run_id, since=finer)).equals(["b", "c"])


@clause(
    "WP-FILTER-10",
    MUST,
    text="At most `limit` annotations are listed, the first ones in the order; a limit of 0 lists none.",
    why="Hosts page by the last one they saw; a limit that keeps the newest skips the rest.",
    hints=["ORDER BY before LIMIT."],
    after=["WP-ANN-01"],
)
async def limit(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _append(ctx, a={}, b={}, c={})
    ctx.expect("values with a limit of 2", await _found(ctx, run_id, limit=2)).equals(["a", "b"])
    ctx.expect("values with a limit of 0", await _found(ctx, run_id, limit=0)).is_empty()
