"""The bundle: stores, loops, life, JSON in and out, and log_call in transactions."""

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.memory.inputs import START, ai_call, annotation, event, run
from tests.memory.test_transactions import UndoError, undone
from workflow_adapters import (
    Adapters,
    ConfigurationError,
    EnqueueJobInput,
    Operations,
    StepLedger,
    SupportsAbsoluteLease,
    SupportsClearExcept,
    SupportsCompleteMany,
    SupportsDefer,
    SupportsDequeueMany,
    SupportsFairness,
    SupportsFlush,
    SupportsHeartbeat,
    SupportsListCalls,
    SupportsOutboxLease,
    SupportsWaiting,
    SupportsWorkerAdoption,
    TransactionAdapters,
    UpdateRunInput,
    UsageError,
    WorkflowPersistence,
    open_adapters,
    open_memory,
)
from workflow_adapters.ai_call_records import batch_results
from workflow_adapters.memory import MemoryStore
from workflow_adapters.memory.ai_call_logger import MemoryAICallLogger, write_calls

CAPABILITIES = {
    "persistence": (WorkflowPersistence, SupportsOutboxLease),
    "job_queue": (
        SupportsDefer,
        SupportsAbsoluteLease,
        SupportsWorkerAdoption,
        SupportsFairness,
        SupportsWaiting,
        SupportsDequeueMany,
        SupportsCompleteMany,
        SupportsHeartbeat,
    ),
    "step_ledger": (StepLedger, SupportsClearExcept),
    "ai_call_logger": (SupportsListCalls, SupportsFlush),
    "operations": (Operations,),
}


@pytest.mark.anyio
async def test_every_capability_is_there_inside_a_transaction_too() -> None:
    async with open_adapters("memory://") as adapters, adapters.transaction() as tx:
        assert isinstance(adapters, Adapters)
        assert isinstance(tx, TransactionAdapters)
        assert tx.connection is None
        for port, capabilities in CAPABILITIES.items():
            for capability in capabilities:
                assert isinstance(getattr(adapters, port), capability)
                assert isinstance(getattr(tx, port), capability)


@pytest.mark.anyio
async def test_bundles_are_independent_unless_they_share_a_store() -> None:
    store = MemoryStore()
    async with open_memory(store=store) as one, open_memory(store=store) as two, open_memory() as three:
        await one.persistence.create_run(run())
        assert await two.persistence.get_run("r") is not None
        assert await three.persistence.get_run("r") is None


@pytest.mark.anyio
async def test_a_bundle_belongs_to_its_loop_and_so_does_its_store() -> None:
    store = MemoryStore()
    async with open_memory(store=store) as adapters:

        async def call() -> None:
            with pytest.raises(UsageError, match="another event loop"):
                await adapters.persistence.get_run("r")
            with pytest.raises(UsageError, match="another event loop"):
                await adapters.ai_call_logger.get_stats("")
            with pytest.raises(UsageError, match="in use by another event loop"):
                async with open_memory(store=store):
                    pass
            async with open_memory() as other:
                await other.persistence.create_run(run())

        await anyio.to_thread.run_sync(lambda: anyio.run(call))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_store_outlives_its_bundles_and_loops(backend: str) -> None:
    store = MemoryStore()

    async def use(run_id: str) -> int:
        async with open_memory(store=store) as adapters:
            await adapters.persistence.create_run(run(run_id))
            with anyio.move_on_after(0):
                await adapters.job_queue.dequeue()
            return len((await adapters.operations.list_runs()).items)

    assert anyio.run(use, "a", backend="asyncio") == 1
    assert anyio.run(use, "b", backend=backend) == 2


@pytest.mark.anyio
async def test_a_closed_bundle_refuses_calls_and_counts_logged_ones(caplog: pytest.LogCaptureFixture) -> None:
    async with open_memory() as adapters:
        async with adapters.transaction() as tx:
            pass
        adapters.ai_call_logger.log_call(ai_call())
    for ports in (adapters, tx):
        with pytest.raises(UsageError, match="closed"):
            await ports.persistence.get_run("r")
    with pytest.raises(UsageError, match="closed"):
        await adapters.migrate()
    adapters.ai_call_logger.log_call(ai_call())
    tx.ai_call_logger.log_call(ai_call())
    assert "AI calls lost so far: 2" in caplog.text


@pytest.mark.anyio
async def test_there_is_nothing_to_bind_and_nothing_to_migrate() -> None:
    async with open_memory() as adapters:
        await adapters.migrate()
        await adapters.check_schema()
        with pytest.raises(ConfigurationError):
            adapters.bind(object())


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no option 'colour'"):
        open_memory(colour="red")  # pyright: ignore[reportCallIssue]  # settings come from anywhere


@pytest.mark.anyio
@pytest.mark.parametrize(
    "options",
    [{"busy_timeout": 5}, {"busy_timeout": timedelta(0)}, {"store": {}}, {"fairness": 1}, {"backoff": 1}],
    ids=str,
)
async def test_an_option_that_makes_no_sense_is_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=f"^{name}: must be"):
        async with open_memory(**options):
            pass


@pytest.mark.anyio
async def test_json_is_copied_on_its_way_in_and_out() -> None:
    mine: dict[str, Any] = {"a": [1]}
    async with open_memory() as adapters:
        created = await adapters.persistence.create_run(given_run := run(input=mine, config=mine, metadata=mine))
        for leak in (mine, given_run.input, created.input, (await stored(adapters)).input):
            spoil(leak)
        given_output: dict[str, Any] = {"b": {}}
        patch = UpdateRunInput(output=given_output)
        await adapters.persistence.update_run("r", patch)
        assert isinstance(patch.output, dict)
        patch.output["b"] = 1
        read = await stored(adapters)
        assert (read.input, read.config, read.output) == ({"a": [1]}, {"a": [1]}, {"b": {}})


async def stored(adapters: Adapters) -> Any:
    return await adapters.persistence.get_run("r")


@pytest.mark.anyio
async def test_json_of_jobs_events_and_annotations_is_copied_too() -> None:
    payload: dict[str, Any] = {"a": [1]}
    async with open_memory() as adapters:
        await adapters.persistence.create_run(run())
        job_input = EnqueueJobInput(workflow_run_id="r", workflow_id="w", stage_id="s", payload=payload)
        inputs = [annotation(value=payload, payload=payload)]
        events = [event(payload=payload)]
        await adapters.job_queue.enqueue_parallel([job_input])
        await adapters.persistence.append_annotations(inputs)
        await adapters.persistence.append_outbox_events(events)
        for given_value in (job_input.payload, inputs[0].value, events[0].payload):
            spoil(given_value)
        for _ in range(2):
            (stored_job,) = await adapters.job_queue.get_jobs_by_workflow_run("r")
            (note,) = await adapters.persistence.list_annotations("r")
            (unpublished,) = await adapters.persistence.get_unpublished_outbox_events()
            for read in (stored_job.payload, note.value, note.payload, unpublished.payload):
                assert read == {"a": [1]}
                spoil(read)


def spoil(value: Any) -> None:
    value["a"].append(2)
    value["b"] = 1


@pytest.mark.anyio
async def test_a_call_logged_in_a_transaction_is_read_there_and_committed_with_it() -> None:
    store = MemoryStore()
    async with open_memory(store=store) as adapters:
        async with adapters.transaction() as tx:
            tx.ai_call_logger.log_call(ai_call())
            assert (await tx.ai_call_logger.get_stats("")).total_calls == 1
            assert (await adapters.ai_call_logger.get_stats("")).total_calls == 0
            async with tx.transaction() as inner:
                inner.ai_call_logger.log_call(ai_call())
            tx.ai_call_logger.log_call(ai_call())
        # Committed with the transaction, not handed over to the buffer afterwards.
        assert len(store.committed.ai_calls) == 3


@pytest.mark.anyio
async def test_what_was_paid_in_a_failed_transaction_stays_paid() -> None:
    async with open_memory() as adapters:
        async with undone(), adapters.transaction() as tx:
            tx.ai_call_logger.log_call(ai_call("written"))
            await tx.persistence.create_run(run())
            await tx.ai_call_logger.is_recorded("b")
            async with undone(), tx.transaction() as inner:
                inner.ai_call_logger.log_call(ai_call("inner"))
                await inner.ai_call_logger.is_recorded("b")
                raise UndoError
            tx.ai_call_logger.log_call(ai_call("pending"))
            raise UndoError
        calls = await adapters.ai_call_logger.list_calls("")
        assert [call.topic for call in calls] == ["written", "inner", "pending"]
        assert await adapters.persistence.get_run("r") is None


@pytest.mark.anyio
async def test_the_outer_logger_inside_a_transaction_reads_but_does_not_wait_for_itself() -> None:
    async with open_memory() as adapters:
        async with adapters.transaction() as tx:
            assert not await adapters.ai_call_logger.is_recorded("b")
            adapters.ai_call_logger.log_call(ai_call())
            with pytest.raises(UsageError, match="own logger"):
                await adapters.ai_call_logger.is_recorded("b")
            await tx.persistence.create_run(run())
        assert (await adapters.ai_call_logger.get_stats("")).total_calls == 1


@pytest.mark.anyio
async def test_a_bundle_opened_inside_a_transaction_of_its_store_logs_like_any_other() -> None:
    store = MemoryStore()
    async with open_memory(store=store) as outer, AsyncExitStack() as stack:
        async with outer.transaction():
            inner = await stack.enter_async_context(open_memory(store=store))
            inner.ai_call_logger.log_call(ai_call())
            await anyio.wait_all_tasks_blocked()
        assert (await inner.ai_call_logger.get_stats("")).total_calls == 1


@pytest.mark.anyio
async def test_a_batch_of_calls_may_be_written_again() -> None:
    async with open_memory() as adapters:
        calls = batch_results("b", [ai_call(), ai_call(request_id="1")], START)
        assert isinstance(adapters.ai_call_logger, MemoryAICallLogger)
        for _ in range(2):
            await write_calls(adapters.ai_call_logger._session, calls)
        assert (await adapters.ai_call_logger.get_stats("")).total_calls == 2
