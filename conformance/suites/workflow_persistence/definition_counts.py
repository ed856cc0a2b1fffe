"""How many runs are pinned to which version."""

from __future__ import annotations

from typing import Any, Final

from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, new_run, run_in
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import Status

_STORED: Final = (Requires("definition_versions", "stored"),)


@clause(
    "WP-COUNT-01",
    MUST,
    text="Runs are counted by workflow, version and status, with the oldest run's created_at; unpinned ones by None.",
    why="A version is retired when no run needs it any more; a count that merges versions says so too early.",
    hints=["GROUP BY workflow_id, definition_version, status; COUNT(*) and MIN(created_at)."],
    needs=_STORED,
    after=["WP-RUN-11"],
)
async def counted(ctx: Context[WorkflowPersistence]) -> None:
    oldest = await new_run(ctx, workflow_id="a", definition_version="v1")
    await ctx.advance(HOUR)
    await new_run(ctx, workflow_id="a", definition_version="v1")
    await new_run(ctx, workflow_id="a", definition_version="v2")
    await run_in(ctx, Status.FAILED, workflow_id="a", definition_version="v1")
    await new_run(ctx, workflow_id="a")
    await new_run(ctx, workflow_id="b", definition_version="v1")
    counts = await ctx.adapter.count_runs_by_definition_version()
    found = {(one.workflow_id, one.definition_version, one.status): one.count for one in counts}
    ctx.expect("rows of the count", counts).has_length(len(found))
    expected = {
        ("a", "v1", Status.PENDING): 2,
        ("a", "v2", Status.PENDING): 1,
        ("a", "v1", Status.FAILED): 1,
        ("a", None, Status.PENDING): 1,
        ("b", "v1", Status.PENDING): 1,
    }
    ctx.expect("runs by workflow, version and status", found).equals(expected)
    instants = {(one.workflow_id, one.definition_version, one.status): one.oldest_created_at for one in counts}
    ctx.expect("oldest_created_at", instants["a", "v1", Status.PENDING]).equals(oldest.created_at)


@clause(
    "WP-COUNT-02",
    MUST,
    text="The count can be narrowed by workflow, by version and by statuses, and by several of them at once.",
    why="A host asks whether anything of its old version is still alive.",
    hints=["Each given filter is an AND; None is no filter."],
    needs=_STORED,
    after=["WP-COUNT-01"],
)
async def narrowed(ctx: Context[WorkflowPersistence]) -> None:
    for workflow_id in ("a", "b"):
        for version in ("v1", "v2", None):
            await new_run(ctx, workflow_id=workflow_id, definition_version=version)
            await run_in(ctx, Status.RUNNING, workflow_id=workflow_id, definition_version=version)

    async def total(**filters: Any) -> int:
        return sum(one.count for one in await ctx.adapter.count_runs_by_definition_version(**filters))

    ctx.expect("runs of a", await total(workflow_id="a")).equals(6)
    ctx.expect("runs of version v1", await total(definition_version="v1")).equals(4)
    ctx.expect("running runs", await total(status=[Status.RUNNING])).equals(6)
    ctx.expect("pending or running runs", await total(status=[Status.RUNNING, Status.PENDING])).equals(12)
    ctx.expect(
        "running runs of b at v2", await total(workflow_id="b", definition_version="v2", status=[Status.RUNNING])
    ).equals(1)
    ctx.expect("completed runs", await total(status=[Status.COMPLETED])).equals(0)


@clause(
    "WP-COUNT-03",
    MUST,
    text="The count is ordered by workflow, then version, byte by byte; unpinned runs come before all versions.",
    why="Two adapters that list one state differently can not be compared, and a page of it can not be continued.",
    hints=['ORDER BY …, definition_version NULLS FIRST; COLLATE "C" where the collation of the database is another.'],
    needs=_STORED,
    after=["WP-COUNT-01"],
)
async def ordered(ctx: Context[WorkflowPersistence]) -> None:
    pairs = [("b", "v1"), ("B", None), ("b", None), ("\u00e9", None), ("b", "V1"), ("_", "v2"), ("b", "v0")]
    for workflow_id, version in pairs:
        await new_run(ctx, workflow_id=workflow_id, definition_version=version)
    counts = await ctx.adapter.count_runs_by_definition_version()
    expected = sorted(pairs, key=lambda pair: (pair[0].encode(), (pair[1] or "").encode()))
    ctx.expect("the order", [(one.workflow_id, one.definition_version) for one in counts]).equals(expected)
