"""Creating and reading runs."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from conformance.builders import run
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import new_run, run_of
from workflow_adapters.errors import AlreadyExistsError
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.runs import WorkflowRunRecord
from workflow_adapters.records.status import Status

_FIELDS: Final[dict[str, Any]] = {
    "workflow_id": "ship",
    "workflow_name": "Ship an order",
    "workflow_type": "orders",
    "input": {"order": 7},
    "config": {"region": "eu"},
    "priority": -2,
    "metadata": {"tenant": "x"},
}


@clause(
    "WP-RUN-01",
    MUST,
    text="create_run stores a PENDING run of version 1 under the given id, and returns it as it is stored.",
    why="Everything else hangs on the run; a record that differs from the row is a lie that the host acts on.",
    hints=["Return what was written, after truncation and defaults."],
)
async def created(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    returned = await ctx.adapter.create_run(run(id=run_id))
    ctx.expect("id", returned.id).equals(run_id)
    ctx.expect("status", returned.status).equals(Status.PENDING)
    ctx.expect("version", returned.version).equals(1)
    ctx.expect("the stored run", await ctx.adapter.get_run(run_id)).equals(returned)


@clause(
    "WP-RUN-02",
    MUST,
    text="A run keeps every field that it was created with.",
    why="A column that is forgotten runs the wrong workflow, or the right one with the wrong settings.",
    hints=["Compare the insert's column list with CreateRunInput, field by field."],
    after=["WP-RUN-01"],
)
async def every_field(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_of(ctx, (await new_run(ctx, **_FIELDS)).id)
    for name, value in _FIELDS.items():
        ctx.expect(name, getattr(stored, name)).equals(value)


@clause(
    "WP-RUN-03",
    MUST,
    text="What a new run was not given: config {}, priority 5, no cost, no tokens, no redrives, and None for the rest.",
    why="Hosts of several languages read these rows; another default is another meaning.",
    hints=["total_cost is a float: 0.0.", "An absent metadata is None, not {}."],
    after=["WP-RUN-01"],
)
async def defaults(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_of(ctx, (await new_run(ctx)).id)
    expected: dict[str, object] = {"config": {}, "priority": 5, "total_cost": 0.0, "total_tokens": 0}
    for name, value in expected.items():
        ctx.expect(name, getattr(stored, name)).equals(value)
    ctx.expect("redrive_count", stored.redrive_count).equals(0)
    for name in ("started_at", "completed_at", "duration", "output", "metadata", "definition_version"):
        ctx.expect(name, getattr(stored, name)).is_none()


@clause(
    "WP-RUN-04",
    MUST,
    text="created_at and updated_at of a new run are the instant of the call, by the adapter's clock.",
    why="The oldest run goes first, and stuck runs are found by updated_at.",
    hints=["The adapter's Clock, also where the database has one."],
    after=["WP-RUN-01"],
)
async def stamps(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_of(ctx, (await new_run(ctx)).id)
    ctx.expect_now("created_at", stored.created_at)
    ctx.expect_now("updated_at", stored.updated_at)


@clause(
    "WP-RUN-05",
    MUST,
    text="A run that was given no id gets one of its own, and later runs get ids that sort after it.",
    why="Rows of one millisecond are ordered by id: it is what keeps insertion order.",
    hints=["UUIDv7 with a counter, or anything that grows within the process, compared byte by byte."],
    after=["WP-RUN-01"],
)
async def generated_ids(ctx: Context[WorkflowPersistence]) -> None:
    ids = [(await ctx.adapter.create_run(run())).id for _ in range(20)]
    ctx.expect("different ids of 20 runs", len(set(ids))).equals(20)
    ctx.expect("ids in the order of their making", ids).equals(sorted(ids))


@clause(
    "WP-RUN-06",
    MUST,
    text="create_run with an id that is taken raises AlreadyExistsError and leaves the stored run alone.",
    why="A retry after a lost reply would overwrite a run that is under way, or look like a fault.",
    hints=["ON CONFLICT DO NOTHING, and no row back means it was there."],
    after=["WP-RUN-01"],
)
async def taken_id(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx, input={"first": True})
    with ctx.raises(AlreadyExistsError, "create_run with a taken id", id=stored.id):
        await ctx.adapter.create_run(run(id=stored.id, input={"second": True}))
    ctx.expect("the stored run", await run_of(ctx, stored.id)).equals(stored)


@clause(
    "WP-RUN-07",
    MUST,
    text="Of several calls that create one id at once, exactly one succeeds and the others raise AlreadyExistsError.",
    why="Two hosts that react to one event would both believe the run is theirs.",
    hints=["The primary key decides, not a look before the insert."],
    after=["WP-RUN-06"],
)
async def racing_for_an_id(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    for _ in range(4):
        given = run(id=ctx.new_id("run"))
        answers = await ctx.settled(*(partial(adapter.create_run, given) for adapter in adapters))
        winners = [answer for answer in answers if isinstance(answer, WorkflowRunRecord)]
        ctx.expect("calls that succeeded", len(winners)).equals(1)
        losers = [answer for answer in answers if not isinstance(answer, WorkflowRunRecord)]
        wrong = [answer for answer in losers if not isinstance(answer, AlreadyExistsError)]
        ctx.expect("other errors than AlreadyExistsError", wrong).is_empty()


@clause(
    "WP-RUN-08",
    MUST,
    text="get_run answers None for a run that does not exist.",
    why="Asking is how hosts find out; an error would have to be told from a fault.",
    hints=["None, no exception."],
)
async def unknown(ctx: Context[WorkflowPersistence]) -> None:
    stored = (await new_run(ctx)).id
    unknown_ids = {
        "an unknown id": ctx.new_id("no-run"),
        "half an id": stored[:-1],
        "an id in capitals": stored.upper(),
    }
    for shown, unknown_id in unknown_ids.items():
        ctx.expect(f"get_run of {shown}", await ctx.adapter.get_run(unknown_id)).is_none()


@clause(
    "WP-RUN-09",
    MUST,
    text="get_run_status answers the status of the run, None where there is no run.",
    why="Handlers poll it to find out that they were cancelled.",
    hints=["A member of Status, not a plain text."],
    after=["WP-RUN-01"],
)
async def status(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    ctx.expect("get_run_status", await ctx.adapter.get_run_status(stored.id)).equals(Status.PENDING)
    unknown_id = ctx.new_id("no-run")
    ctx.expect("get_run_status of an unknown id", await ctx.adapter.get_run_status(unknown_id)).is_none()


@clause(
    "WP-RUN-10",
    MUST,
    text="A second adapter on the store sees the run as soon as create_run has returned.",
    why="The worker that picks it up is another process.",
    hints=["Commit before returning."],
    after=["WP-RUN-01"],
)
async def shared_store(ctx: Context[WorkflowPersistence]) -> None:
    other, run_id = await ctx.second(), ctx.new_id("run")
    ctx.expect("a run that nobody has created", await other.get_run(run_id)).is_none()
    stored = await new_run(ctx, id=run_id)
    ctx.expect("the run as the other adapter sees it", await other.get_run(stored.id)).equals(stored)


@clause(
    "WP-RUN-11",
    MUST,
    text="A run keeps the definition version that it is pinned to.",
    why="A run that loses its version is continued by whatever code is deployed.",
    hints=["The column definitionVersion is written by create_run."],
    needs=[Requires("definition_versions", "stored")],
    after=["WP-RUN-01"],
)
async def pinned(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx, definition_version="v7")
    ctx.expect("definition_version", (await run_of(ctx, stored.id)).definition_version).equals("v7")
