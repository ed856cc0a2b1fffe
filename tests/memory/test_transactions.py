"""Transactions, savepoints and who may call on them."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskStatus

from tests.memory.inputs import annotation, event, job, run, stage
from workflow_adapters import (
    Adapters,
    AlreadyExistsError,
    BackendBusyError,
    NotFoundError,
    Ports,
    UsageError,
    WorkflowPersistence,
    open_memory,
)
from workflow_adapters.memory import MemoryStore
from workflow_adapters.opening import Opening

pytestmark = pytest.mark.anyio


class UndoError(Exception):
    """Leaves a block by failure."""


@asynccontextmanager
async def undone() -> AsyncGenerator[None]:
    """Swallow the failure of the block inside."""
    try:
        yield
    except UndoError:
        return
    pytest.fail("the block did not fail")


async def write_everywhere(ports: Ports) -> None:
    await ports.persistence.create_run(run())
    await ports.persistence.create_stage(stage())
    await ports.persistence.append_annotations([annotation()])
    await ports.persistence.append_outbox_events([event()])
    await ports.persistence.acquire_idempotency_key("k", "c")
    await ports.job_queue.enqueue_parallel([job()])


async def counts(ports: Ports) -> tuple[int, ...]:
    p = ports.persistence
    return (
        len((await ports.operations.list_runs()).items),
        len(await p.get_stages_by_run("r")),
        len(await p.list_annotations("r")),
        len(await p.get_unpublished_outbox_events()),
        len(await ports.job_queue.get_jobs_by_workflow_run("r")),
    )


async def test_readers_outside_see_the_last_commit() -> None:
    async with open_memory() as adapters:
        async with adapters.transaction() as tx:
            await write_everywhere(tx)
            assert await counts(tx) == (1, 1, 1, 1, 1)
            assert await counts(adapters) == (0, 0, 0, 0, 0)
        assert await counts(adapters) == (1, 1, 1, 1, 1)


async def test_a_failed_block_leaves_nothing_in_either_state() -> None:
    store = MemoryStore()
    async with open_memory(store=store) as adapters:
        async with undone(), adapters.transaction() as tx:
            await write_everywhere(tx)
            raise UndoError
        assert await counts(adapters) == (0, 0, 0, 0, 0)
        # What was written is gone from the indexes as well: everything can be made again.
        async with adapters.transaction() as tx:
            await write_everywhere(tx)
            assert [e.sequence for e in await tx.persistence.get_unpublished_outbox_events()] == [1]
        assert await counts(adapters) == (1, 1, 1, 1, 1)


async def test_with_transaction_gives_back_the_value_and_the_error_unchanged() -> None:
    error = UndoError()

    async def works(tx: WorkflowPersistence) -> str:
        await tx.create_run(run())
        return "value"

    async def fails(tx: WorkflowPersistence) -> None:
        await tx.create_run(run("other"))
        raise error

    async with open_memory() as adapters:
        assert await adapters.persistence.with_transaction(works) == "value"
        with pytest.raises(UndoError) as caught:
            await adapters.persistence.with_transaction(fails)
        assert caught.value is error
        assert await adapters.persistence.get_run("other") is None


async def test_an_inner_failure_undoes_the_inner_work_alone() -> None:
    async with open_memory() as adapters:
        async with adapters.transaction() as tx:
            await tx.persistence.create_run(run("before"))
            async with undone(), tx.transaction() as inner:
                await inner.persistence.create_run(run("inner"))
                async with inner.persistence.transaction() as innermost:
                    await innermost.create_run(run("innermost"))
                raise UndoError
            await tx.persistence.create_run(run("after"))
        assert {r.id for r in (await adapters.operations.list_runs()).items} == {"before", "after"}


async def test_an_outer_failure_undoes_inner_blocks_that_ended_well() -> None:
    async with open_memory() as adapters:
        async with undone(), adapters.transaction() as tx:
            async with tx.transaction() as inner:
                await inner.persistence.create_run(run())
            raise UndoError
        assert await adapters.persistence.get_run("r") is None


async def test_errors_of_ours_leave_the_transaction_usable() -> None:
    async with open_memory() as adapters:
        async with adapters.persistence.transaction() as tx:
            await tx.create_run(run())
            with pytest.raises(AlreadyExistsError):
                await tx.create_run(run())
            with pytest.raises(NotFoundError):
                await tx.append_annotations([annotation(), annotation(run_id="missing")])
            await tx.create_stage(stage())
        assert await counts(adapters) == (1, 1, 0, 0, 0)


async def test_a_write_on_the_outer_adapter_inside_the_block_is_refused_at_once() -> None:
    async with open_memory() as adapters:
        async with adapters.transaction() as tx:
            await tx.persistence.create_run(run())
            for call in outer_writes(adapters):
                with pytest.raises(UsageError, match="transaction that is open here"):
                    await call()
        # The same calls are fine outside of it.
        for call in outer_writes(adapters):
            await call()


def outer_writes(adapters: Adapters) -> list[Callable[[], Awaitable[object]]]:
    async def transaction() -> None:
        async with adapters.transaction():
            pass

    return [
        lambda: adapters.persistence.append_annotations([]),
        adapters.job_queue.dequeue,
        transaction,
    ]


async def test_a_second_bundle_on_the_store_is_outside_too() -> None:
    store = MemoryStore()
    async with open_memory(store=store) as one, open_memory(store=store) as two, one.transaction():
        with pytest.raises(UsageError):
            await two.job_queue.dequeue()


async def test_a_task_started_inside_the_block_counts_as_inside() -> None:
    async with open_memory() as adapters, adapters.transaction(), anyio.create_task_group() as tasks:

        async def write() -> None:
            with pytest.raises(UsageError):
                await adapters.job_queue.dequeue()

        tasks.start_soon(write)


async def test_another_task_waits_for_its_turn_and_not_for_ever() -> None:
    store = MemoryStore()
    order: list[str] = []
    async with open_memory(store=store) as adapters, anyio.create_task_group() as tasks:
        hasty = await enter_later(tasks, open_memory(store=store, busy_timeout=timedelta(milliseconds=20)))

        async def write() -> None:
            with pytest.raises(BackendBusyError):
                await hasty.persistence.create_run(run("never"))
            order.append("gave up")
            await adapters.persistence.create_run(run())
            order.append("written")

        async def hold(*, task_status: TaskStatus[None]) -> None:
            async with adapters.transaction():
                task_status.started()
                while order != ["gave up"]:  # noqa: ASYNC110 - the other task reports by a list, not by an event
                    await anyio.sleep(0.001)
                await anyio.wait_all_tasks_blocked()
                order.append("released")

        await tasks.start(hold)
        await write()
        assert order == ["gave up", "released", "written"]
        assert await adapters.persistence.get_run("never") is None
        tasks.cancel_scope.cancel()


async def enter_later(tasks: anyio.abc.TaskGroup, opening: Opening) -> Adapters:
    """Keep a bundle open in a task of its own."""

    async def keep(*, task_status: TaskStatus[Adapters]) -> None:
        async with opening as adapters:
            task_status.started(adapters)
            await anyio.sleep_forever()

    return await tasks.start(keep)


async def test_a_call_on_the_outer_tx_inside_its_inner_block_is_refused() -> None:
    async with open_memory() as adapters, adapters.persistence.transaction() as tx:
        async with tx.transaction() as inner:
            with pytest.raises(UsageError, match="inner block"):
                await tx.get_run("r")
            async with inner.transaction():
                with pytest.raises(UsageError, match="inner block"):
                    await tx.get_run("r")
                with pytest.raises(UsageError, match="inner block"):
                    await inner.get_run("r")

            async def from_inside() -> None:
                with pytest.raises(UsageError, match="inner block"):
                    await tx.get_run("r")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(from_inside)
        assert await tx.get_run("r") is None


async def test_tasks_outside_the_inner_block_wait_for_its_end_one_after_the_other() -> None:
    order: list[str] = []
    async with open_memory() as adapters, adapters.persistence.transaction() as tx:

        async def block(name: str) -> None:
            async with tx.transaction() as inner:
                order.append(f"{name} begins")
                await inner.create_run(run(name))
                await anyio.wait_all_tasks_blocked()
                order.append(f"{name} ends")

        async def call() -> None:
            assert await tx.get_run("one") is not None
            order.append("called")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(block, "one")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(call)
            tasks.start_soon(block, "two")
    assert order[:2] == ["one begins", "one ends"]
    assert sorted(order[2:]) == ["called", "two begins", "two ends"]
    assert order.index("two ends") == order.index("two begins") + 1


async def test_a_tx_after_its_end_is_refused() -> None:
    async with open_memory() as adapters:
        async with adapters.transaction() as tx:
            async with tx.transaction() as inner:
                pass
            with pytest.raises(UsageError, match="has ended"):
                await inner.persistence.get_run("r")
        for call in (tx.persistence.get_run, inner.persistence.get_run, tx.persistence.delete_run):
            with pytest.raises(UsageError, match="has ended"):
                await call("r")


async def test_a_block_left_by_another_task_too_late_harms_nobody() -> None:
    async with open_memory() as adapters, anyio.create_task_group() as tasks:
        leave = anyio.Event()

        async def stay(tx: WorkflowPersistence, *, task_status: TaskStatus[None]) -> None:
            async with undone(), tx.transaction() as inner:
                await inner.create_run(run("late"))
                task_status.started()
                await leave.wait()
                with pytest.raises(UsageError, match="has ended"):
                    await inner.create_run(run("too late"))
                raise UndoError

        async with undone(), adapters.persistence.transaction() as tx:
            await tasks.start(stay, tx)
            raise UndoError
        async with adapters.persistence.transaction() as next_tx:
            await next_tx.create_run(run("next"))
            leave.set()
            await anyio.wait_all_tasks_blocked()
            await next_tx.create_run(run("and more"))
        assert {r.id for r in (await adapters.operations.list_runs()).items} == {"next", "and more"}


async def test_a_block_that_ends_well_waits_for_the_inner_blocks_of_other_tasks() -> None:
    async with open_memory() as adapters, anyio.create_task_group() as tasks:

        async def write(tx: WorkflowPersistence, *, task_status: TaskStatus[None]) -> None:
            async with tx.transaction() as inner:
                task_status.started()
                await anyio.wait_all_tasks_blocked()
                await inner.create_run(run())

        async with adapters.persistence.transaction() as tx:
            await tasks.start(write, tx)
        assert await adapters.persistence.get_run("r") is not None


async def test_concurrent_calls_on_one_tx_all_count() -> None:
    async with open_memory() as adapters:
        async with adapters.persistence.transaction() as tx, anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(tx.create_run, run(str(n)))
        assert len((await adapters.operations.list_runs()).items) == 20
