"""Transactions: all or nothing, and what others see meanwhile."""

from __future__ import annotations

import anyio

from conformance.builders import annotation, event, run
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.workflow_persistence.scenes import Broken, new_run, run_of
from workflow_adapters.errors import UsageError
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import Status


class _Killed(BaseException):
    """As Broken, past every `except Exception`."""


@clause(
    "WP-TX-01",
    MUST,
    text="What a transaction block has written is there when it ends.",
    why="A run without its first event is never announced.",
    hints=["Commit when the block is left without an error."],
    after=["WP-RUN-01", "WP-OUT-01"],
)
async def commits(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    async with ctx.adapter.transaction() as tx:
        await tx.create_run(run(id=run_id))
        await tx.append_outbox_events([event(run_id)])
    await run_of(ctx, run_id)
    ctx.expect("events", await ctx.adapter.get_unpublished_outbox_events()).has_length(1)


@clause(
    "WP-TX-02",
    MUST,
    text="with_transaction commits when the function returns, and gives back its value.",
    why="Hosts return what they have made.",
    hints=["return await fn(tx), after the commit."],
    after=["WP-RUN-01"],
)
async def returns_the_value(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")

    async def create(tx: WorkflowPersistence) -> tuple[str, int]:
        return (await tx.create_run(run(id=run_id))).id, 7

    ctx.expect("the value", await ctx.adapter.with_transaction(create)).equals((run_id, 7))
    await run_of(ctx, run_id)


@clause(
    "WP-TX-03",
    MUST,
    text="An error in a transaction undoes everything that it wrote, and propagates as the very same object.",
    why="Half a command is worse than none; a host that waits for its own error must find it.",
    hints=["Roll back and re-raise; wrap nothing.", "BaseException too: a cancellation is one."],
    after=["WP-TX-01", "WP-TX-02"],
)
async def rolls_back(ctx: Context[WorkflowPersistence]) -> None:
    other = await ctx.second()
    for error in (Broken("x"), _Killed("x")):
        stored, run_id = await new_run(ctx), ctx.new_id("run")

        async def work(
            tx: WorkflowPersistence, ids: tuple[str, str] = (stored.id, run_id), raised: BaseException = error
        ) -> None:
            updated, created = ids
            await tx.create_run(run(id=created))
            await tx.update_run(updated, UpdateRunInput(status=Status.FAILED))
            await tx.append_annotations([annotation(updated)])
            raise raised

        with ctx.raises(type(error), "with_transaction") as raised:
            await ctx.adapter.with_transaction(work)
        ctx.expect("the error is the one that was raised", raised.error is error).is_true()
        ctx.expect("the run created", await ctx.adapter.get_run(run_id)).is_none()
        ctx.expect("the run updated", await run_of(ctx, stored.id)).equals(stored)
        ctx.expect("annotations", await ctx.adapter.list_annotations(stored.id)).is_empty()
        # What an open transaction holds, another adapter would wait for.
        await other.update_run(stored.id, UpdateRunInput(expected_version=stored.version))


@clause(
    "WP-TX-04",
    MUST,
    text="The block of transaction() is undone when it raises, like that of with_transaction.",
    why="The two forms are used side by side.",
    hints=["One implementation behind both."],
    after=["WP-TX-03"],
)
async def context_manager_rolls_back(ctx: Context[WorkflowPersistence]) -> None:
    run_id, error = ctx.new_id("run"), Broken("x")
    with ctx.raises(Broken, "the block") as raised:
        async with ctx.adapter.transaction() as tx:
            await tx.create_run(run(id=run_id))
            raise error
    ctx.expect("the error is the one that was raised", raised.error is error).is_true()
    ctx.expect("the run created", await ctx.adapter.get_run(run_id)).is_none()


@clause(
    "WP-TX-05",
    MUST,
    text="A transaction reads what it has written itself.",
    why="A command that reads on decides on the state that it has just changed.",
    hints=["tx reads on the transaction's own connection."],
    after=["WP-TX-01"],
)
async def reads_its_own_writes(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    async with ctx.adapter.transaction() as tx:
        await tx.update_run(stored.id, UpdateRunInput(status=Status.RUNNING))
        ctx.expect("the status inside", await tx.get_run_status(stored.id)).equals(Status.RUNNING)


@clause(
    "WP-TX-06",
    MUST,
    text="Until it is committed nobody else sees what a transaction writes, its own outer adapter included.",
    why="A worker would start a run that is then rolled back.",
    hints=["Read on another connection than the transaction's."],
    after=["WP-TX-05"],
)
async def isolated(ctx: Context[WorkflowPersistence]) -> None:
    other = await ctx.second()
    stored = await new_run(ctx)
    async with ctx.adapter.transaction() as tx:
        await tx.update_run(stored.id, UpdateRunInput(status=Status.RUNNING))
        run_id = (await tx.create_run(run(id=ctx.new_id("run")))).id
        for shown, adapter in (("the outer adapter", ctx.adapter), ("another adapter", other)):
            ctx.expect(f"the run updated, for {shown}", await adapter.get_run(stored.id)).equals(stored)
            ctx.expect(f"the run created, for {shown}", await adapter.get_run(run_id)).is_none()
    ctx.expect("the run created, for another adapter, afterwards", await other.get_run(run_id)).is_not_none()


@clause(
    "WP-TX-07",
    MUST,
    text="A tx that is used after its end raises UsageError and writes nothing.",
    why="The write would go to a connection that is somebody else's transaction by then.",
    hints=["Mark the handle when the block ends, by commit or by rollback."],
    after=["WP-TX-01"],
)
async def after_its_end(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    handles: dict[str, WorkflowPersistence] = {}
    async with ctx.adapter.transaction() as tx:
        handles["committed"] = tx
    with ctx.raises(Broken, "the block"):
        async with ctx.adapter.transaction() as tx:
            handles["rolled back"] = tx
            raise Broken
    for shown, tx in handles.items():
        with ctx.raises(UsageError, f"create_run on a tx that was {shown}"):
            await tx.create_run(run(id=run_id))
        with ctx.raises(UsageError, f"get_run on a tx that was {shown}"):
            await tx.get_run(run_id)
    ctx.expect("the run", await ctx.adapter.get_run(run_id)).is_none()


@clause(
    "WP-TX-10",
    MUST,
    text="A block that is cancelled is undone, and the adapter is usable afterwards.",
    why="A client that disconnects would leave an open transaction that locks everybody out.",
    hints=["Roll back on BaseException, shielded from a second cancellation."],
    after=["WP-TX-03"],
)
async def cancelled(ctx: Context[WorkflowPersistence]) -> None:
    stored, run_id, other = await new_run(ctx), ctx.new_id("run"), await ctx.second()
    with anyio.CancelScope() as scope:
        async with ctx.adapter.transaction() as tx:
            await tx.create_run(run(id=run_id))
            await tx.update_run(stored.id, UpdateRunInput(status=Status.FAILED))
            scope.cancel()
            await anyio.sleep_forever()
    ctx.expect("the run created", await ctx.adapter.get_run(run_id)).is_none()
    await other.update_run(stored.id, UpdateRunInput(expected_version=stored.version))
    ctx.expect("a run created afterwards", (await new_run(ctx, id=run_id)).version).equals(1)


@clause(
    "WP-TX-11",
    MUST,
    text="Events of a transaction that is rolled back leave no gap in their run's numbers.",
    why="Consumers wait for the missing number for ever.",
    hints=["No sequence of the database: its numbers are not given back."],
    after=["WP-TX-03", "WP-OUT-07"],
)
async def no_gap(ctx: Context[WorkflowPersistence]) -> None:
    run_id = ctx.new_id("run")
    await ctx.adapter.append_outbox_events([event(run_id)])
    with ctx.raises(Broken, "the block"):
        async with ctx.adapter.transaction() as tx:
            await tx.append_outbox_events([event(run_id), event(run_id)])
            raise Broken
    await ctx.adapter.append_outbox_events([event(run_id)])
    listed = await ctx.adapter.get_unpublished_outbox_events()
    ctx.expect("sequences", [one.sequence for one in listed]).equals([1, 2])
