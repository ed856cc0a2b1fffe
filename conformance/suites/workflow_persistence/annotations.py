"""append_annotations."""

from __future__ import annotations

from functools import partial
from typing import Any

from conformance.builders import annotation
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.values import ALIKE
from conformance.suites.workflow_persistence.scenes import new_stage
from workflow_adapters.errors import NotFoundError
from workflow_adapters.inputs.annotations import AnnotationActor, AnnotationFilters
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence


async def _keys_and_values(ctx: Context[WorkflowPersistence], run_id: str) -> list[tuple[str, object]]:
    return [(one.key, one.value) for one in await ctx.adapter.list_annotations(run_id)]


@clause(
    "WP-ANN-01",
    MUST,
    text="append_annotations stores annotations with all their fields, stamped now.",
    why="Who said what about which attempt is what annotations are for.",
    hints=["actor.kind, actor.id and actor.version are three columns."],
    after=["WP-RUN-01"],
)
async def every_field(ctx: Context[WorkflowPersistence]) -> None:
    stage = await new_stage(ctx)
    fields: dict[str, Any] = {
        "workflow_run_id": stage.workflow_run_id,
        "workflow_stage_record_id": stage.id,
        "attempt": 2,
        "scope": "stage",
        "scope_id": "build",
        "key": "review.verdict",
        "value": {"ok": True},
        "payload": [1, 2],
        "idempotency_key": "once",
    }
    actor = AnnotationActor(kind="human", id="ada", version="3")
    await ctx.adapter.append_annotations([annotation(fields["workflow_run_id"], actor=actor, **_without_run(fields))])
    (stored,) = ctx.expect("annotations", await ctx.adapter.list_annotations(stage.workflow_run_id)).has_length(1)
    for name, value in fields.items():
        ctx.expect(name, getattr(stored, name)).equals(value)
    ctx.expect("the actor", (stored.actor_kind, stored.actor_id, stored.actor_version)).equals(("human", "ada", "3"))
    ctx.expect_now("created_at", stored.created_at)


def _without_run(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "workflow_run_id"}


@clause(
    "WP-ANN-02",
    MUST,
    text="What an annotation was not given reads None, and the attempt 0.",
    why="An absent actor or scope is no actor called ''.",
    hints=["Store NULL."],
    after=["WP-ANN-01"],
)
async def defaults(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.append_annotations([annotation(run_id)])
    (stored,) = ctx.expect("annotations", await ctx.adapter.list_annotations(run_id)).has_length(1)
    ctx.expect("attempt", stored.attempt).equals(0)
    absent = "workflow_stage_record_id scope_id actor_kind actor_id actor_version payload idempotency_key"
    for name in absent.split():
        ctx.expect(name, getattr(stored, name)).is_none()


@clause(
    "WP-ANN-03",
    MUST,
    text="An annotation whose run, key and idempotency key are stored already is skipped without a word.",
    why="A retried stage would note the same fact again; an error would fail the stage for having succeeded before.",
    hints=["ON CONFLICT DO NOTHING; the stored one stays as it is."],
    after=["WP-ANN-01"],
)
async def stored_already(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.append_annotations([annotation(run_id, value=1, idempotency_key="once")])
    batch = [annotation(run_id, value=2, idempotency_key="once"), annotation(run_id, "other", value=3)]
    await ctx.adapter.append_annotations(batch)
    ctx.expect("keys and values", await _keys_and_values(ctx, run_id)).equals([("note", 1), ("other", 3)])


@clause(
    "WP-ANN-04",
    MUST,
    text="Of annotations in one batch with one run, key and idempotency key the first is stored.",
    why="A batch that repeats itself must not fail, nor keep the last.",
    hints=["ON CONFLICT DO NOTHING also within the statement; an upsert keeps the last."],
    after=["WP-ANN-03"],
)
async def first_in_the_batch(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    batch = [annotation(run_id, value=value, idempotency_key="once") for value in (1, 2, 3)]
    await ctx.adapter.append_annotations(batch)
    ctx.expect("keys and values", await _keys_and_values(ctx, run_id)).equals([("note", 1)])


@clause(
    "WP-ANN-05",
    MUST,
    text="Annotations without an idempotency key never collide.",
    why="Measurements are noted again and again under one key; all but one would be lost.",
    hints=["NULLs are distinct in a unique key; '' is not NULL."],
    after=["WP-ANN-01"],
)
async def no_key_no_collision(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.append_annotations([annotation(run_id, value=1), annotation(run_id, value=1)])
    await ctx.adapter.append_annotations([annotation(run_id, value=1)])
    ctx.expect("annotations", await ctx.adapter.list_annotations(run_id)).has_length(3)


@clause(
    "WP-ANN-06",
    MUST,
    text="One idempotency key under another key, or in another run, is another annotation.",
    why="Hosts use the attempt or the event's id as the key for everything that they note.",
    hints=["The unique key is (workflow_run_id, key, idempotency_key)."],
    after=["WP-ANN-03"],
)
async def three_parts(ctx: Context[WorkflowPersistence]) -> None:
    first, second = await ctx.new_run(), await ctx.new_run()
    batch = [annotation(run, key, idempotency_key="once") for run in (first, second) for key in ("a", "b")]
    await ctx.adapter.append_annotations(batch)
    ctx.expect("annotations of the first run", await ctx.adapter.list_annotations(first)).has_length(2)
    ctx.expect("annotations of the second run", await ctx.adapter.list_annotations(second)).has_length(2)
    third = await ctx.new_run()
    await ctx.adapter.append_annotations([annotation(third, key, idempotency_key=once) for key, once in ALIKE])
    listed = await ctx.adapter.list_annotations(third)
    ctx.expect("pairs of the third run", {(one.key, one.idempotency_key) for one in listed}).equals(set(ALIKE))


@clause(
    "WP-ANN-07",
    MUST,
    text="A batch with an annotation of an unknown run raises NotFoundError for that run and stores nothing.",
    why="Half a batch can not be told from a whole one, and its retry doubles what has no idempotency key.",
    hints=["One statement or one transaction around the batch."],
    after=["WP-ANN-01"],
)
async def unknown_run(ctx: Context[WorkflowPersistence]) -> None:
    run_id, missing = await ctx.new_run(), ctx.new_id("no-run")
    with ctx.raises(NotFoundError, "append_annotations", id=missing):
        await ctx.adapter.append_annotations([annotation(run_id), annotation(missing), annotation(run_id)])
    ctx.expect("annotations of the run", await ctx.adapter.list_annotations(run_id)).is_empty()


@clause(
    "WP-ANN-08",
    MUST,
    text="A batch with an annotation of an unknown stage raises NotFoundError for that stage and stores nothing.",
    why="A reference to nothing shows the note at the wrong place, or nowhere.",
    hints=["A foreign key on workflow_stage_record_id."],
    after=["WP-ANN-01"],
)
async def unknown_stage(ctx: Context[WorkflowPersistence]) -> None:
    run_id, missing = await ctx.new_run(), ctx.new_id("no-stage")
    batch = [annotation(run_id), annotation(run_id, workflow_stage_record_id=missing)]
    with ctx.raises(NotFoundError, "append_annotations", id=missing):
        await ctx.adapter.append_annotations(batch)
    ctx.expect("annotations of the run", await ctx.adapter.list_annotations(run_id)).is_empty()


@clause(
    "WP-ANN-09",
    MUST,
    text="Appending no annotations does nothing.",
    why="A stage that has nothing to note is no error.",
    hints=["Return before an empty statement."],
)
async def nothing(ctx: Context[WorkflowPersistence]) -> None:
    ctx.expect("append_annotations of nothing", await ctx.adapter.append_annotations([])).is_none()


@clause(
    "WP-ANN-10",
    MUST,
    text="emit_event is the host's: the adapter appends no event for it.",
    why="Every event would be published twice, by the adapter and by the host.",
    hints=["Ignore the field."],
    after=["WP-ANN-01"],
)
async def emit_event(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.append_annotations([annotation(run_id, emit_event=True)])
    ctx.expect("annotations", await ctx.adapter.list_annotations(run_id)).has_length(1)
    ctx.expect("events", await ctx.adapter.get_unpublished_outbox_events()).is_empty()


@clause(
    "WP-ANN-11",
    MUST,
    text="Of several batches at once with one idempotency key, one is stored and none fails.",
    why="Two workers that note the same fact meet here; one of them would fail for it.",
    hints=["The unique key decides, with ON CONFLICT DO NOTHING."],
    after=["WP-ANN-03"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    run_id = await ctx.new_run()
    for number in range(4):
        batch = [annotation(run_id, f"key-{number}-{n}", idempotency_key="once") for n in range(3)]
        batches = [batch if place % 2 else batch[::-1] for place in range(len(adapters))]
        await ctx.together(
            *(partial(adapter.append_annotations, given) for adapter, given in zip(adapters, batches, strict=True))
        )
    ctx.expect("annotations", await ctx.adapter.list_annotations(run_id)).has_length(12)


@clause(
    "WP-ANN-12",
    MUST,
    text="One batch of 2,500 annotations is stored whole and listed in its order.",
    why="A large batch must not meet the database's limit of bound parameters half-way.",
    hints=["Pass arrays, or work in chunks inside one transaction."],
    after=["WP-ANN-01"],
)
async def large_batch(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.append_annotations([annotation(run_id, value=number) for number in range(2_500)])
    first = await ctx.adapter.list_annotations(run_id)
    ctx.expect("values listed by default, at most 1,000", [one.value for one in first]).equals(list(range(1_000)))
    listed = await ctx.adapter.list_annotations(run_id, AnnotationFilters(limit=3_000))
    ctx.expect("values listed with a limit of 3,000", [one.value for one in listed]).equals(list(range(2_500)))
