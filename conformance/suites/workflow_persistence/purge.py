"""list_runs_for_purge and delete_run."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from conformance.builders import annotation, event, run
from conformance.clause import MUST, Requires
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import HOUR, MINUTE, MS, new_run, new_stage, run_in, run_of
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import InProgress
from workflow_adapters.records.status import LogLevel, Status

_ENDED: Final = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)
_CLOCK: Final = Requires("clock", "caller")


async def _finished(
    ctx: Context[WorkflowPersistence], completed_at: datetime | None, status: Status = Status.COMPLETED
) -> str:
    stored = await new_run(ctx)
    await ctx.adapter.update_run(stored.id, UpdateRunInput(status=status, completed_at=completed_at))
    return stored.id


async def _listed(ctx: Context[WorkflowPersistence], cutoff: datetime, limit: int = 100) -> list[str]:
    return [one.id for one in await ctx.adapter.list_runs_for_purge(cutoff, _ENDED, limit)]


@clause(
    "WP-PURGE-01",
    MUST,
    text="list_runs_for_purge lists runs that were completed at or before the cut-off, and no later ones.",
    why="A purge that is off deletes what has to be kept, or keeps everything.",
    hints=["completed_at <= cutoff, the instant included."],
    after=["WP-UPDATE-01"],
)
async def cutoff(ctx: Context[WorkflowPersistence]) -> None:
    at = ctx.now() - HOUR
    run_id = await _finished(ctx, at)
    ctx.expect("runs with the cut-off at that instant", await _listed(ctx, at)).equals([run_id])
    ctx.expect("runs with the cut-off a millisecond before", await _listed(ctx, at - MS)).is_empty()


@clause(
    "WP-PURGE-02",
    MUST,
    text="A run without completed_at has finished when it was last updated.",
    why="Runs cancelled before they began have no end, and would be kept for ever.",
    hints=["COALESCE(completed_at, updated_at)."],
    needs=[_CLOCK],
    after=["WP-PURGE-01", "WP-UPDATE-04"],
)
async def without_completed_at(ctx: Context[WorkflowPersistence]) -> None:
    run_id = await _finished(ctx, None, Status.CANCELLED)
    at = ctx.now()
    await ctx.advance(HOUR)
    ctx.expect("runs with the cut-off at the update", await _listed(ctx, at)).equals([run_id])
    ctx.expect("runs with the cut-off before it", await _listed(ctx, at - MS)).is_empty()


@clause(
    "WP-PURGE-03",
    MUST,
    text="Only runs in one of the given statuses are listed.",
    why="Failed runs are often kept longer than completed ones.",
    hints=["status = ANY(the statuses)."],
    after=["WP-PURGE-01"],
)
async def statuses(ctx: Context[WorkflowPersistence]) -> None:
    at = ctx.now() - HOUR
    ids = {status: await _finished(ctx, at, status) for status in Status}
    for status in _ENDED:
        found = [one.id for one in await ctx.adapter.list_runs_for_purge(ctx.now(), [status], 100)]
        ctx.expect(f"runs listed for {status}", found).equals([ids[status]])
    both = await ctx.adapter.list_runs_for_purge(ctx.now(), [Status.FAILED, Status.CANCELLED], 100)
    ctx.expect("runs listed for two statuses", {one.id for one in both}).equals(
        {ids[Status.FAILED], ids[Status.CANCELLED]}
    )
    ctx.expect("runs listed for no status", await ctx.adapter.list_runs_for_purge(ctx.now(), [], 100)).is_empty()


@clause(
    "WP-PURGE-04",
    MUST,
    text="A status that can not be purged is refused, be it the only one or one of several.",
    why="Work in progress would be deleted.",
    hints=["COMPLETED, FAILED and CANCELLED; SKIPPED is terminal but not purgeable."],
)
async def refused(ctx: Context[WorkflowPersistence]) -> None:
    for status in (Status.PENDING, Status.RUNNING, Status.SUSPENDED, Status.SKIPPED):
        for given in ([status], [Status.COMPLETED, status]):
            with ctx.raises(InvalidValueError, f"list_runs_for_purge of {status}", field="statuses"):
                await ctx.adapter.list_runs_for_purge(ctx.now(), given, 100)


@clause(
    "WP-PURGE-05",
    MUST,
    text="Runs are listed by the instant they finished, then by id, and at most `limit` of them: the oldest.",
    why="A purge works in bounded batches from the oldest on; another order never gets to the end.",
    hints=["ORDER BY COALESCE(completed_at, updated_at), id LIMIT n."],
    after=["WP-PURGE-01"],
)
async def order(ctx: Context[WorkflowPersistence]) -> None:
    at = ctx.now() - 2 * HOUR
    stem = ctx.new_id("run")
    ids = {f"{stem}{tail}": minutes for tail, minutes in (("c", 0), ("a", 30), ("B", 30), ("b", 30), ("z", -30))}
    for number, (run_id, minutes) in enumerate(ids.items()):
        await ctx.adapter.create_run(run(id=run_id, priority=number))
        patch = UpdateRunInput(status=Status.COMPLETED, completed_at=at + minutes * MINUTE)
        await ctx.adapter.update_run(run_id, patch)
    expected = [f"{stem}{tail}" for tail in ("z", "c", "B", "a", "b")]
    ctx.expect("runs listed", await _listed(ctx, ctx.now())).equals(expected)
    ctx.expect("runs listed with a limit of 2", await _listed(ctx, ctx.now(), 2)).equals(expected[:2])
    ctx.expect("runs listed with a limit of 0", await _listed(ctx, ctx.now(), 0)).is_empty()


@clause(
    "WP-PURGE-06",
    MUST,
    text="Each run is listed with its workflow's type, its status and the record ids of all its stages.",
    why="Hosts find the run's blobs by type and stage; what is not listed is never deleted.",
    hints=["Stages by a join that keeps runs without stages."],
    after=["WP-PURGE-01", "WP-STAGE-01"],
)
async def contents(ctx: Context[WorkflowPersistence]) -> None:
    at = ctx.now() - HOUR
    stored = await new_run(ctx, workflow_type="orders")
    stages = {(await new_stage(ctx, stored.id, name)).id for name in ("a", "b")}
    await new_stage(ctx)
    await ctx.adapter.update_run(stored.id, UpdateRunInput(status=Status.FAILED, completed_at=at))
    bare = await _finished(ctx, at - HOUR)
    first, second = ctx.expect("runs listed", await ctx.adapter.list_runs_for_purge(at, _ENDED, 2)).has_length(2)
    ctx.expect("stages of the run without stages", (first.id, first.stage_record_ids)).equals((bare, ()))
    ctx.expect("workflow_type", second.workflow_type).equals("orders")
    ctx.expect("status", second.status).equals(Status.FAILED)
    ctx.expect("stages of the other run", sorted(second.stage_record_ids)).equals(sorted(stages))


@clause(
    "WP-DELETE-01",
    MUST,
    text="delete_run deletes the run with its stages, logs and annotations.",
    why="Rows that are left behind are found by no purge again; personal data stays.",
    hints=["Foreign keys with ON DELETE CASCADE, enforced on every connection."],
    after=["WP-STAGE-01", "WP-ANN-01"],
)
async def with_all_it_owns(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    stage = await new_stage(ctx, stored.id)
    await ctx.adapter.append_annotations([annotation(stored.id, workflow_stage_record_id=stage.id)])
    await ctx.adapter.create_log(
        CreateLogInput(level=LogLevel.INFO, message="x", workflow_run_id=stored.id, workflow_stage_id=stage.id)
    )
    await ctx.adapter.delete_run(stored.id)
    ctx.expect("the run", await ctx.adapter.get_run(stored.id)).is_none()
    ctx.expect("its stages", await ctx.adapter.get_stages_by_run(stored.id)).is_empty()
    ctx.expect("its stage by name", await ctx.adapter.get_stage(stored.id, stage.stage_id)).is_none()
    ctx.expect("its annotations", await ctx.adapter.list_annotations(stored.id)).is_empty()


@clause(
    "WP-DELETE-02",
    MUST,
    text="delete_run leaves other runs and what they own alone.",
    why="A purge of one run must not be felt by any other.",
    hints=["Every DELETE names the run."],
    after=["WP-DELETE-01"],
)
async def others_stay(ctx: Context[WorkflowPersistence]) -> None:
    deleted, kept = await new_run(ctx), await new_run(ctx)
    stage = await new_stage(ctx, kept.id)
    await ctx.adapter.append_annotations([annotation(kept.id)])
    await ctx.adapter.delete_run(deleted.id)
    ctx.expect("the other run", await run_of(ctx, kept.id)).equals(kept)
    ctx.expect("its stages", await ctx.adapter.get_stages_by_run(kept.id)).equals([stage])
    ctx.expect("its annotations", await ctx.adapter.list_annotations(kept.id)).has_length(1)


@clause(
    "WP-DELETE-03",
    MUST,
    text="delete_run of a run that does not exist changes nothing and raises nothing.",
    why="Two purges meet; the second must not fail on what the first has done.",
    hints=["No row deleted is no error here."],
)
async def unknown(ctx: Context[WorkflowPersistence]) -> None:
    ctx.expect("delete_run", await ctx.adapter.delete_run(ctx.new_id("no-run"))).is_none()


@clause(
    "WP-DELETE-04",
    MUST,
    text="delete_run does not touch the run's outbox events, nor any idempotency key.",
    why="Events that were committed must still be published; a key that is gone lets a command run twice.",
    hints=["No foreign key leads from these tables to the runs."],
    after=["WP-DELETE-01", "WP-OUT-01", "WP-IDEM-02"],
)
async def events_and_keys_stay(ctx: Context[WorkflowPersistence]) -> None:
    stored = await run_in(ctx, Status.COMPLETED)
    await ctx.adapter.append_outbox_events([event(stored.id)])
    await ctx.adapter.acquire_idempotency_key(stored.id, "test")
    await ctx.adapter.delete_run(stored.id)
    left = [one for one in await ctx.adapter.get_unpublished_outbox_events() if one.workflow_run_id == stored.id]
    ctx.expect("events of the run", left).has_length(1)
    again = await ctx.adapter.acquire_idempotency_key(stored.id, "test")
    ctx.expect("the key", again).equals(InProgress())
