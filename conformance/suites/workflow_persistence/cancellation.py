"""Calls and blocks that are cancelled half-way."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from conformance.builders import annotation, event, run, stage
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.interruption import Call, Ending, Look, cancel_everywhere
from conformance.suites.workflow_persistence.scenes import new_run, new_stage, run_of
from workflow_adapters.errors import AlreadyExistsError, NotFoundError
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput, UpsertStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.idempotency import Acquired, InProgress
from workflow_adapters.records.status import JobAckOutcome, LogLevel, Status

_TIME: Final = timedelta(seconds=20)
_HINTS: Final = (
    "One owner for the span from BEGIN to COMMIT; its end is shielded, against anyio and against task.cancel().",
    "A connection whose state is not known is thrown away, not given back.",
)


@clause(
    "WP-CANCELLATION-01",
    MUST,
    text="Cancelling create_run anywhere leaves the run or nothing, and the adapter usable.",
    why="A client that disconnects would leave an open transaction or a locked file behind.",
    hints=_HINTS,
    after=["WP-RUN-01"],
    time_limit=_TIME,
)
async def create(ctx: Context[WorkflowPersistence]) -> None:
    async def trial() -> tuple[Call, Look]:
        run_id = ctx.new_id("run")

        async def look(ending: Ending) -> None:
            found = await ctx.adapter.get_run(run_id) is not None
            ctx.expect(f"the run is there, by {ending.by}", found).is_one_of(True, ending.came_back)
            await new_run(ctx)

        return partial(ctx.adapter.create_run, run(id=run_id)), look

    await cancel_everywhere(trial)


@clause(
    "WP-CANCELLATION-02",
    MUST,
    text="Cancelling a claim of a run anywhere leaves it claimed or pending, never half of it, and the adapter usable.",
    why="A run that is RUNNING without a start is found by no recovery.",
    hints=_HINTS,
    after=["WP-CLAIM-01"],
    time_limit=_TIME,
)
async def claim(ctx: Context[WorkflowPersistence]) -> None:
    async def trial() -> tuple[Call, Look]:
        stored = await new_run(ctx)

        async def look(ending: Ending) -> None:
            after = await run_of(ctx, stored.id)
            found = (after.status, after.version, after.started_at is not None)
            allowed = [(Status.RUNNING, 2, True), *([] if ending.came_back else [(Status.PENDING, 1, False)])]
            ctx.expect(f"status, version and start, by {ending.by}", found).is_one_of(*allowed)
            await ctx.adapter.update_run(stored.id, UpdateRunInput(status=Status.CANCELLED))

        return ctx.adapter.claim_next_pending_run, look

    await cancel_everywhere(trial)


@clause(
    "WP-CANCELLATION-03",
    MUST,
    text="Cancelling append_outbox_events anywhere leaves all of its events or none, and no gap behind them.",
    why="A number that is taken and not used makes consumers wait for it.",
    hints=_HINTS,
    after=["WP-OUT-01"],
    time_limit=_TIME,
)
async def append(ctx: Context[WorkflowPersistence]) -> None:
    async def trial() -> tuple[Call, Look]:
        run_id = ctx.new_id("run")

        async def look(ending: Ending) -> None:
            await ctx.adapter.append_outbox_events([event(run_id)])
            listed = await ctx.adapter.get_unpublished_outbox_events(100_000)
            sequences = [one.sequence for one in listed if one.workflow_run_id == run_id]
            allowed = [[1, 2, 3, 4], *([] if ending.came_back else [[1]])]
            ctx.expect(f"sequences, by {ending.by}", sequences).is_one_of(*allowed)

        return partial(ctx.adapter.append_outbox_events, [event(run_id)] * 3), look

    await cancel_everywhere(trial)


@clause(
    "WP-CANCELLATION-04",
    MUST,
    text="Cancelling a transaction anywhere leaves all of its writes or none, and the adapter usable.",
    why="An interrupted rollback leaves an open transaction: on SQLite it locks everybody out until a restart.",
    hints=_HINTS,
    after=["WP-TX-02", "WP-TX-03"],
    time_limit=_TIME,
)
async def transaction(ctx: Context[WorkflowPersistence]) -> None:
    async def trial() -> tuple[Call, Look]:
        run_id = ctx.new_id("run")

        async def work(tx: WorkflowPersistence) -> None:
            await tx.create_run(run(id=run_id))
            async with tx.transaction() as inner:
                await inner.update_run(run_id, UpdateRunInput(total_tokens=1))
            await tx.append_outbox_events([event(run_id)])

        async def look(ending: Ending) -> None:
            stored = await ctx.adapter.get_run(run_id)
            listed = await ctx.adapter.get_unpublished_outbox_events(100_000)
            found = (None if stored is None else stored.version, sum(one.workflow_run_id == run_id for one in listed))
            allowed = [(2, 1), *([] if ending.came_back else [(None, 0)])]
            ctx.expect(f"version of the run and number of events, by {ending.by}", found).is_one_of(*allowed)
            async with ctx.adapter.transaction() as tx:
                await tx.create_run(run())

        return partial(ctx.adapter.with_transaction, work), look

    await cancel_everywhere(trial)


@clause(
    "WP-CANCELLATION-05",
    MUST,
    text="Cancelling acquire_idempotency_key anywhere leaves the key held or free, and the adapter usable.",
    why="What a caller never learnt must at least be findable: a held key is reclaimed by its age.",
    hints=_HINTS,
    after=["WP-IDEM-02"],
    time_limit=_TIME,
)
async def acquire(ctx: Context[WorkflowPersistence]) -> None:
    async def trial() -> tuple[Call, Look]:
        key = ctx.new_id("key")

        async def look(ending: Ending) -> None:
            outcome = await ctx.adapter.acquire_idempotency_key(key, "t")
            if ending.came_back:
                ctx.expect(f"the next acquire, by {ending.by}", outcome).equals(InProgress())
            else:
                ctx.expect(f"the next acquire, by {ending.by}", type(outcome)).is_one_of(InProgress, Acquired)
            released = await ctx.adapter.release_idempotency_key(key, "t")
            ctx.expect("release", released).equals(JobAckOutcome.ACKNOWLEDGED)

        return partial(ctx.adapter.acquire_idempotency_key, key, "t"), look

    await cancel_everywhere(trial)


@clause(
    "WP-CANCELLATION-06",
    MUST,
    text="Cancelling any other call of the port anywhere leaves the adapter usable.",
    why="One method that leaves a lock behind is enough: everybody waits for it.",
    hints=_HINTS,
    after=["WP-CANCELLATION-01", "WP-STAGE-21", "WP-ANN-01", "WP-FLUSH-01", "WP-IDEM-03"],
    time_limit=_TIME,
)
async def any_other_call(ctx: Context[WorkflowPersistence]) -> None:
    one = await new_stage(ctx)
    wp, run_id, now = ctx.adapter, one.workflow_run_id, ctx.now()
    line = CreateLogInput(level=LogLevel.INFO, message="x", workflow_run_id=run_id)
    await wp.acquire_idempotency_key(run_id, "t")
    calls: tuple[Call, ...] = (
        partial(wp.update_run, run_id, UpdateRunInput()),
        partial(wp.get_run, run_id),
        partial(wp.get_stuck_runs, now),
        partial(wp.list_runs_for_purge, now, [Status.FAILED], 10),
        partial(wp.create_stage, stage(run_id, "other")),
        partial(wp.upsert_stage, UpsertStageInput(create=stage(run_id), update=UpdateStageInput())),
        partial(wp.update_stage, one.id, UpdateStageInput()),
        partial(wp.get_stages_by_run, run_id),
        partial(wp.get_suspended_stages, now),
        partial(wp.create_log, line),
        partial(wp.append_annotations, [annotation(run_id)]),
        partial(wp.list_annotations, run_id),
        partial(wp.get_unpublished_outbox_events),
        partial(wp.claim_unpublished_outbox_events),
        partial(wp.replay_dlq_events, 10),
        partial(wp.complete_idempotency_key, run_id, "t", 1),
        partial(wp.release_idempotency_key, run_id, "t"),
        partial(wp.delete_stage, one.id),
        partial(wp.delete_run, run_id),
    )

    async def look(ending: Ending) -> None:
        ctx.expect(f"a run created after a cancellation by {ending.by}", (await new_run(ctx)).version).equals(1)

    for call in calls:

        async def trial(tried: Call = call) -> tuple[Call, Look]:
            return tried, look

        # A call that was not cut off in an earlier trial may find that there is nothing left to do.
        await cancel_everywhere(trial, (AlreadyExistsError, NotFoundError))
