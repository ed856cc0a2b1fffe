"""update_run: patches, versions, and the compare of expected_version."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, new_run, run_in, run_of
from workflow_adapters.errors import NotFoundError, StaleVersionError
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import Status


@clause(
    "WP-UPDATE-01",
    MUST,
    text="update_run writes every field that the patch gives.",
    why="A field that is dropped leaves the run in a state that nobody has decided on.",
    hints=["Build the SET list from the fields that are not UNSET."],
    after=["WP-RUN-01"],
)
async def every_field(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    patch: dict[str, Any] = {
        "status": Status.FAILED,
        "started_at": ctx.now() - HOUR,
        "completed_at": ctx.now() - MINUTE,
        "duration": 3_540_000,
        "output": {"done": [1, 2]},
        "total_cost": 1.25,
        "total_tokens": 900,
    }
    await ctx.adapter.update_run(stored.id, UpdateRunInput(**patch))
    after = await run_of(ctx, stored.id)
    for name, value in patch.items():
        ctx.expect(name, getattr(after, name)).equals(value)


@clause(
    "WP-UPDATE-02",
    MUST,
    text="update_run leaves alone what the patch does not give.",
    why="A later, smaller update would wipe out what an earlier one has recorded.",
    hints=["UNSET keeps the column; only given fields are in the SET list."],
    after=["WP-UPDATE-01"],
)
async def the_rest_stays(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx, metadata={"m": 1}, config={"c": 1}, priority=8)
    patch = UpdateRunInput(
        started_at=ctx.now(), completed_at=ctx.now(), duration=5, output=1, total_cost=0.5, total_tokens=3
    )
    await ctx.adapter.update_run(stored.id, patch)
    before = await run_of(ctx, stored.id)
    await ctx.adapter.update_run(stored.id, UpdateRunInput(status=Status.COMPLETED))
    after = await run_of(ctx, stored.id)
    for name in before.__dataclass_fields__:
        if name not in ("status", "version", "updated_at"):
            ctx.expect(name, getattr(after, name)).equals(getattr(before, name))


@clause(
    "WP-UPDATE-03",
    MUST,
    text="Every update_run raises the version by exactly one, an empty patch too.",
    why="The version is how a writer learns that another was there; a write that hides is overwritten.",
    hints=["version = version + 1 in every UPDATE of the table."],
    after=["WP-RUN-01"],
)
async def version(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    patches = (UpdateRunInput(status=Status.RUNNING), UpdateRunInput(), UpdateRunInput(expected_version=3))
    for number, patch in enumerate(patches, 2):
        await ctx.adapter.update_run(stored.id, patch)
        ctx.expect("version", (await run_of(ctx, stored.id)).version).equals(number)


@clause(
    "WP-UPDATE-04",
    MUST,
    text="Every update_run sets updated_at to now, an empty patch too, and leaves created_at alone.",
    why="Stuck runs are found by updated_at: a run that was touched must not look abandoned.",
    hints=["updated_at is in every SET list."],
    after=["WP-RUN-04"],
)
async def stamps(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    for patch in (UpdateRunInput(status=Status.RUNNING), UpdateRunInput()):
        await ctx.advance(MINUTE)
        await ctx.adapter.update_run(stored.id, patch)
        after = await run_of(ctx, stored.id)
        ctx.expect_now("updated_at", after.updated_at)
        ctx.expect("created_at", after.created_at).equals(stored.created_at)


@clause(
    "WP-UPDATE-05",
    MUST,
    text="With the expected_version that is stored, update_run writes.",
    why="Optimistic locking that never lets anybody through stops the engine.",
    hints=["Compare with the stored version, before it is raised."],
    after=["WP-UPDATE-03"],
)
async def expected_version(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    await ctx.adapter.update_run(stored.id, UpdateRunInput(status=Status.RUNNING, expected_version=1))
    ctx.expect("status", (await run_of(ctx, stored.id)).status).equals(Status.RUNNING)


@clause(
    "WP-UPDATE-06",
    MUST,
    text="With another expected_version update_run raises StaleVersionError with both versions and writes nothing.",
    why="A late writer would overwrite a cancellation with a completion.",
    hints=["The version is in the WHERE of the UPDATE.", "An older and a newer version are both wrong."],
    after=["WP-UPDATE-05"],
)
async def stale_version(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_in(ctx, Status.CANCELLED)
    for expected in (1, 3):
        with ctx.raises(StaleVersionError, "update_run", id=stored.id, expected=expected, actual=2):
            await ctx.adapter.update_run(stored.id, UpdateRunInput(status=Status.COMPLETED, expected_version=expected))
        ctx.expect("the stored run", await run_of(ctx, stored.id)).equals(stored)


@clause(
    "WP-UPDATE-07",
    MUST,
    text="update_run of a run that does not exist raises NotFoundError, with or without an expected_version.",
    why="A write to nothing that passes for success loses the outcome of a run.",
    hints=["No row updated: look whether the run exists to tell stale from missing."],
)
async def unknown(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("no-run")
    for patch in (UpdateRunInput(status=Status.RUNNING), UpdateRunInput(expected_version=1)):
        with ctx.raises(NotFoundError, "update_run of an unknown run", id=run_id):
            await ctx.adapter.update_run(run_id, patch)
    ctx.expect("the run afterwards", await ctx.adapter.get_run(run_id)).is_none()


@clause(
    "WP-UPDATE-08",
    MUST,
    text="Of several updates at once that expect the same version, exactly one writes; the others are stale.",
    why="Cancelling and completing race in production; both would believe they have decided.",
    hints=["Compare and write in one statement; the row count tells."],
    after=["WP-UPDATE-06"],
)
async def racing_writers(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    stored = await new_run(ctx)
    for expected in range(1, 13):
        patch = UpdateRunInput(status=Status.RUNNING, expected_version=expected)
        answers = await ctx.settled(*(partial(adapter.update_run, stored.id, patch) for adapter in adapters))
        ctx.expect("updates that wrote", sum(answer is None for answer in answers)).equals(1)
        wrong = [answer for answer in answers if not isinstance(answer, StaleVersionError | None)]
        ctx.expect("other errors than StaleVersionError", wrong).is_empty()
        ctx.expect("version", (await run_of(ctx, stored.id)).version).equals(expected + 1)


@clause(
    "WP-UPDATE-09",
    MUST,
    text="No update is lost: after N updates at once without expected_version, the version is N higher.",
    why="A version that is read, raised and written back lets two writers share one number.",
    hints=["version = version + 1 in SQL, not in the adapter."],
    after=["WP-UPDATE-03"],
)
async def no_lost_update(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 3
    stored = await new_run(ctx)
    patches = [UpdateRunInput(total_tokens=number) for number in range(len(adapters))]
    await ctx.together(
        *(partial(adapter.update_run, stored.id, patch) for adapter, patch in zip(adapters, patches, strict=True))
    )
    ctx.expect("version", (await run_of(ctx, stored.id)).version).equals(1 + len(adapters))


@clause(
    "WP-UPDATE-10",
    MUST,
    text="Each status can be written to a run and reads back as itself.",
    why="An enum of the database that lacks one fails on the one path that needs it.",
    hints=["Bind the enum's value; read it back as a Status."],
    after=["WP-UPDATE-01"],
)
async def every_status(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    for status in Status:
        await ctx.adapter.update_run(stored.id, UpdateRunInput(status=status))
        ctx.expect("status", (await run_of(ctx, stored.id)).status).equals(status)
        ctx.expect("get_run_status", await ctx.adapter.get_run_status(stored.id)).equals(status)


@clause(
    "WP-UPDATE-11",
    MUST,
    text="update_run changes the run that it names and no other.",
    why="An UPDATE without its WHERE is the shortest way to lose a database.",
    hints=["WHERE id = the run."],
    after=["WP-UPDATE-01"],
)
async def no_other_run(ctx: Context[WorkflowPersistence]) -> None:
    stored, other = await new_run(ctx), await new_run(ctx)
    await ctx.adapter.update_run(stored.id, UpdateRunInput(status=Status.FAILED))
    ctx.expect("the other run", await run_of(ctx, other.id)).equals(other)


_VERSIONS: Final = Requires("definition_versions", "stored")


@clause(
    "WP-UPDATE-12",
    MUST,
    text="update_run writes definition_version and redrive_count.",
    why="A redrive moves a run to another version and is counted; without it it would be repeated for ever.",
    hints=["Both columns are in the patch's mapping."],
    needs=[_VERSIONS],
    after=["WP-UPDATE-01"],
)
async def versioning_columns(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx, definition_version="v1")
    await ctx.adapter.update_run(stored.id, UpdateRunInput(definition_version="v2", redrive_count=3))
    after = await run_of(ctx, stored.id)
    ctx.expect("definition_version", after.definition_version).equals("v2")
    ctx.expect("redrive_count", after.redrive_count).equals(3)
