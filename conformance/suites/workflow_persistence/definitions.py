"""Definition versions."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from conformance.builders import run
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.values import ALIKE
from conformance.suites.workflow_persistence.scenes import MINUTE, new_run, run_of, served
from workflow_adapters.inputs.definitions import CreateDefinitionInput
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence

_STORED: Final = (Requires("definition_versions", "stored"),)
_ABSENT: Final = (Requires("definition_versions", "absent"),)


def _definition(**fields: Any) -> CreateDefinitionInput:
    defaults: dict[str, Any] = {"workflow_id": "flow", "version": "v1", "snapshot": {"n": 1}, "structure_hash": "h1"}
    return CreateDefinitionInput(**(defaults | fields))


@clause(
    "WP-DEF-01",
    MUST,
    text="With the versioning tables the detection answers True, and so does the probe after it.",
    why="Hosts decide by it whether to pin runs.",
    hints=["Ask the catalogue, not by a statement that may fail inside the caller's transaction."],
    needs=_STORED,
)
async def detected(ctx: Context[WorkflowPersistence]) -> None:
    ctx.expect("the detection", await ctx.adapter.ensure_definition_versioning_detected()).is_true()
    ctx.expect("the probe", ctx.adapter.supports_definition_versioning()).is_true()


@clause(
    "WP-DEF-02",
    MUST,
    text="insert_definition_if_absent stores a definition with all its fields, stamped now, and returns it.",
    why="A run is replayed by the snapshot of its version; one that differs replays something else.",
    hints=["Return the row as it is stored."],
    needs=_STORED,
)
async def inserted(ctx: Context[WorkflowPersistence]) -> None:
    returned = await ctx.adapter.insert_definition_if_absent(_definition(structure_hash="abc"))
    stored = ctx.expect("the returned record", returned).is_not_none()
    ctx.expect("workflow_id and version", (stored.workflow_id, stored.version)).equals(("flow", "v1"))
    ctx.expect("snapshot", stored.snapshot).equals({"n": 1})
    ctx.expect("structure_hash", stored.structure_hash).equals("abc")
    ctx.expect_now("created_at", stored.created_at)
    ctx.expect("get_definition", await ctx.adapter.get_definition("flow", "v1")).equals(stored)


@clause(
    "WP-DEF-03",
    MUST,
    text="A second registration of a workflow's version changes nothing and returns the stored definition.",
    why="Each deployment registers what it has; the first one's snapshot is what running runs were started with.",
    hints=["ON CONFLICT DO NOTHING returns no row: read it then."],
    needs=_STORED,
    after=["WP-DEF-02"],
)
async def registered_twice(ctx: Context[WorkflowPersistence]) -> None:
    first = await ctx.adapter.insert_definition_if_absent(_definition())
    await ctx.advance(MINUTE)
    second = await ctx.adapter.insert_definition_if_absent(_definition(snapshot={"n": 2}, structure_hash="h2"))
    ctx.expect("the second registration", second).equals(first)
    ctx.expect("get_definition", await ctx.adapter.get_definition("flow", "v1")).equals(first)


@clause(
    "WP-DEF-04",
    MUST,
    text="A definition is known by workflow and version together; what was not registered is None.",
    why="Versions of two workflows have the same names.",
    hints=["The primary key is (workflow_id, version)."],
    needs=_STORED,
    after=["WP-DEF-02"],
)
async def the_pair_is_the_key(ctx: Context[WorkflowPersistence]) -> None:
    for fields in ({}, {"version": "v2"}, {"workflow_id": "other"}):
        await ctx.adapter.insert_definition_if_absent(_definition(snapshot=fields, **fields))
    other = ctx.expect("get_definition", await ctx.adapter.get_definition("other", "v1")).is_not_none()
    ctx.expect("its snapshot", other.snapshot).equals({"workflow_id": "other"})
    ctx.expect("a pair that was not registered", await ctx.adapter.get_definition("other", "v2")).is_none()
    for workflow_id, version in ALIKE:
        given = _definition(workflow_id=workflow_id, version=version)
        stored = ctx.expect("a new pair", await ctx.adapter.insert_definition_if_absent(given)).is_not_none()
        ctx.expect("the stored pair", (stored.workflow_id, stored.version)).equals((workflow_id, version))


@clause(
    "WP-DEF-05",
    MUST,
    text="Of several registrations at once one is stored, and all of them return it.",
    why="Every replica of a deployment registers at its start; one that fails does not start.",
    hints=["The winner may have committed after the statement's snapshot: read again, in a bounded loop."],
    needs=_STORED,
    after=["WP-DEF-03"],
)
async def racing(ctx: Context[WorkflowPersistence]) -> None:
    adapters = await ctx.instances(3) * 2
    for number in range(4):
        inputs = [_definition(version=f"v{number}", snapshot=place) for place in range(len(adapters))]
        answers = await ctx.together(
            *(
                partial(adapter.insert_definition_if_absent, given)
                for adapter, given in zip(adapters, inputs, strict=True)
            )
        )
        stored = await ctx.adapter.get_definition("flow", f"v{number}")
        ctx.expect("what the registrations returned", answers).equals([stored] * len(adapters))


@clause(
    "WP-DEF-06",
    MUST,
    text="The detection asks inside a transaction without harming it.",
    why="It is often the first thing that a host does in its first transaction.",
    hints=["A query of the catalogue; a statement that fails aborts the transaction."],
    after=["WP-TX-01"],
)
async def detection_inside(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    async with ctx.adapter.transaction() as tx:
        detected_inside = await tx.ensure_definition_versioning_detected()
        await tx.create_run(run(id=run_id))
    ctx.expect("the detection", detected_inside).equals(ctx.parameters.definition_versions == "stored")
    await run_of(ctx, run_id)


@clause(
    "WP-DEF-11",
    MUST,
    text="Without the versioning tables the detection answers False, and definitions are None or empty.",
    why="The first call of a host on an older database must not fail, least of all inside its transaction.",
    hints=["Ask the catalogue once, and remember."],
    needs=_ABSENT,
)
async def absent(ctx: Context[WorkflowPersistence]) -> None:
    ctx.expect("the detection", await ctx.adapter.ensure_definition_versioning_detected()).is_false()
    ctx.expect("the probe", ctx.adapter.supports_definition_versioning()).is_false()
    inserted_definition = await ctx.adapter.insert_definition_if_absent(_definition())
    ctx.expect("insert_definition_if_absent", inserted_definition).is_none()
    ctx.expect("get_definition", await ctx.adapter.get_definition("flow", "v1")).is_none()
    ctx.expect("the count", await ctx.adapter.count_runs_by_definition_version()).is_empty()


@clause(
    "WP-DEF-12",
    MUST,
    text="Without the versioning columns a given version or redrive count is ignored, and reads None and 0.",
    why="Hosts pass them always; a run must not fail for what it can do without.",
    hints=["Leave the columns out of the statement when they are not there."],
    needs=_ABSENT,
    after=["WP-RUN-01"],
)
async def ignored(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx, definition_version="v1")
    await ctx.adapter.update_run(stored.id, UpdateRunInput(definition_version="v2", redrive_count=4))
    after = await run_of(ctx, stored.id)
    ctx.expect("definition_version", after.definition_version).is_none()
    ctx.expect("redrive_count", after.redrive_count).equals(0)
    ctx.expect("version", after.version).equals(2)


@clause(
    "WP-DEF-13",
    MUST,
    text="Without the versioning columns the claim of a run ignores serves, an empty one too.",
    why="Nothing on such a database says who may take a run; filtering would leave all of them lying.",
    hints=["serves counts for nothing there."],
    needs=_ABSENT,
    after=["WP-CLAIM-01"],
)
async def serves_is_ignored(ctx: Context[WorkflowPersistence]) -> None:
    for serves in ([], [served("other")]):
        await new_run(ctx)
        ctx.expect("a claim", await ctx.adapter.claim_next_pending_run(serves=serves)).is_not_none()
