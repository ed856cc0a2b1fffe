"""The buffer behind log_call: order, bounds, outages, bad rows, threads, close and cancels."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from workflow_adapters.ai_call_buffer import AICallBuffer
from workflow_adapters.ai_call_transaction import TransactionAICalls
from workflow_adapters.clock import ManualClock
from workflow_adapters.errors import (
    BackendBusyError,
    BackendUnavailableError,
    OutcomeUnknownError,
    SchemaError,
    UsageError,
)
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.records.ai_call_logger import AICallRecord
from workflow_adapters.transaction_scope import TransactionScope


def call(topic: str = "t", **fields: Any) -> CreateAICallInput:
    given = {"call_type": "chat", "model_key": "m", "model_id": "m-1", "prompt": "p", "response": "r"}
    return CreateAICallInput(topic=topic, input_tokens=1, output_tokens=2, cost=0.1, **{**given, **fields})


class Table:
    """A backend of one table: it fails as it is told, and refuses rows of the topic "bad"."""

    def __init__(self) -> None:
        self.rows: dict[str, AICallRecord] = {}
        self.batches: list[int] = []
        self.faults: list[Exception] = []
        self.fault: Exception | None = None
        self.gate: anyio.Event | None = None

    async def write(self, batch: Sequence[AICallRecord]) -> None:
        await anyio.lowlevel.checkpoint()
        if self.gate is not None:
            await self.gate.wait()
        self.batches.append(len(batch))
        if self.faults:
            raise self.faults.pop(0)
        if self.fault is not None:
            raise self.fault
        if any(row.topic == "bad" for row in batch):
            raise ValueError("bad row")
        for row in batch:
            self.rows.setdefault(row.id, row)

    @property
    def topics(self) -> list[str]:
        return [row.topic for row in self.rows.values()]


def buffer_of(table: Table, **options: Any) -> AICallBuffer:
    return AICallBuffer(table.write, ManualClock(), **options)


def transaction_calls(table: Table, outer: AICallBuffer | TransactionAICalls) -> TransactionAICalls:
    calls = TransactionAICalls(ManualClock(), outer)
    calls.opened(table.write)
    return calls


@pytest.mark.anyio
async def test_calls_are_written_in_order_with_the_id_and_instant_of_log() -> None:
    table, clock = Table(), ManualClock()
    buffer = AICallBuffer(table.write, clock)
    logged_at = clock.now()
    metadata: dict[str, Any] = {"a": [1]}
    async with buffer.running():
        for n in range(1200):
            buffer.log(call(f"t{n}", metadata=metadata))
        metadata["a"].append(2)
        clock.advance(timedelta(hours=1))
        await buffer.flush()
        assert table.topics == [f"t{n}" for n in range(1200)]
    assert {row.created_at for row in table.rows.values()} == {logged_at}
    assert list(table.rows) == sorted(table.rows)
    assert table.rows[min(table.rows)].metadata == {"a": [1]}
    assert table.batches == [500, 500, 200]


@pytest.mark.anyio
async def test_a_call_is_durable_soon_without_a_flush() -> None:
    table = Table()
    buffer = buffer_of(table)
    async with buffer.running():
        await anyio.wait_all_tasks_blocked()
        buffer.log(call())
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        assert table.topics == ["t"]


@pytest.mark.anyio
async def test_calls_from_threads_and_from_before_the_loop_are_written() -> None:
    table = Table()
    buffer = buffer_of(table)
    buffer.log(call("early"))
    async with buffer.running():
        await buffer.flush()
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(anyio.to_thread.run_sync, lambda: [buffer.log(call()) for _ in range(50)])
        await buffer.flush()
        assert len(table.rows) == 201
    assert table.topics[0] == "early"
    assert buffer.dropped == 0


@pytest.mark.anyio
async def test_close_writes_what_is_left_and_later_calls_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    buffer = buffer_of(table)
    async with buffer.running():
        for _ in range(700):
            buffer.log(call())
    assert len(table.rows) == 700
    buffer.log(call())
    assert buffer.dropped == 1
    assert "AI calls lost so far: 1" in caplog.text
    with pytest.raises(UsageError, match="closed"):
        await buffer.flush()


@pytest.mark.anyio
async def test_an_outage_keeps_the_calls_and_their_order(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    table.faults = [BackendUnavailableError("down"), OutcomeUnknownError("cut"), BackendBusyError("busy")]
    buffer = buffer_of(table)
    with caplog.at_level(logging.WARNING):
        async with buffer.running():
            for n in range(3):
                buffer.log(call(f"t{n}"))
            await buffer.flush()
            assert table.topics == ["t0", "t1", "t2"]
    assert buffer.dropped == 0
    assert caplog.text.count("wait in the buffer") == 1


@pytest.mark.anyio
async def test_what_does_not_fit_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    table.fault = BackendUnavailableError("down")
    buffer = buffer_of(table, capacity=10)
    async with buffer.running():
        for n in range(25):
            buffer.log(call(f"t{n}"))
        assert buffer.dropped == 15
        table.fault = None
        await buffer.flush()
    assert table.topics == [f"t{n}" for n in range(10)]
    assert "lost so far: 15" in caplog.text


@pytest.mark.anyio
async def test_the_text_in_the_buffer_is_bounded_too() -> None:
    table = Table()
    buffer = buffer_of(table, text_capacity=100)
    async with buffer.running():
        buffer.log(call("fits", prompt="x" * 90))
        buffer.log(call("does not", prompt="x" * 90))
        buffer.log(call("fits"))
        await buffer.flush()
        buffer.log(call("fits again", prompt="x" * 90))
    assert table.topics == ["fits", "fits", "fits again"]
    assert buffer.dropped == 1


@pytest.mark.anyio
async def test_a_bad_row_does_not_harm_its_batch(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    buffer = buffer_of(table)
    async with buffer.running():
        for n in range(9):
            buffer.log(call("bad" if n in (3, 7) else f"t{n}"))
        await buffer.flush()
        assert table.topics == ["t0", "t1", "t2", "t4", "t5", "t6", "t8"]
    assert buffer.dropped == 2
    assert "bad row" in caplog.text


@pytest.mark.anyio
async def test_log_never_raises() -> None:
    table = Table()
    buffer = buffer_of(table)
    wrong: list[Any] = ["no call at all", None, SimpleNamespace(metadata=None)]
    async with buffer.running():
        for call in wrong:
            buffer.log(call)
    assert buffer.dropped == 3


@pytest.mark.anyio
async def test_flush_gives_up_with_the_reason_and_keeps_the_calls() -> None:
    table = Table()
    table.fault = BackendUnavailableError("down")
    buffer = buffer_of(table, flush_timeout=timedelta(milliseconds=20))
    async with buffer.running():
        buffer.log(call())
        with pytest.raises(BackendUnavailableError, match="stay in the buffer") as caught:
            await buffer.flush()
        assert caught.value.__cause__ is table.fault
        table.fault = SchemaError(["table ai_calls"], "await adapters.migrate()")
        with pytest.raises(SchemaError, match="migrate"):
            await buffer.flush()
        table.fault = None
    assert table.topics == ["t"]


@pytest.mark.anyio
async def test_close_gives_up_at_its_deadline_and_says_what_was_lost(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    table.gate = anyio.Event()
    buffer = buffer_of(table, close_timeout=timedelta(milliseconds=20))
    async with buffer.running():
        buffer.log(call())
        buffer.log(call())
    assert buffer.dropped == 2
    assert "could not be written before the logger closed" in caplog.text


@pytest.mark.anyio
async def test_the_error_of_the_block_comes_out_as_it_is() -> None:
    table = Table()
    buffer = buffer_of(table)
    error = ValueError("mine")

    async def use() -> None:
        async with buffer.running():
            buffer.log(call())
            raise error

    with pytest.raises(ValueError, match="mine") as caught:
        await use()
    assert caught.value is error
    assert table.topics == ["t"]


@pytest.mark.anyio
async def test_a_cancelled_block_still_writes() -> None:
    table = Table()
    buffer = buffer_of(table)
    with anyio.CancelScope() as scope:
        async with buffer.running():
            buffer.log(call())
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert table.topics == ["t"]


@pytest.mark.asyncio
async def test_two_native_cancels_of_the_block_and_one_of_the_writer_still_write() -> None:
    table = Table()
    table.gate = anyio.Event()
    buffer = buffer_of(table)
    writers: list[asyncio.Task[Any]] = []

    async def use() -> None:
        before = asyncio.all_tasks()
        async with buffer.running():
            writers.extend(asyncio.all_tasks() - before)
            buffer.log(call())
            await anyio.sleep_forever()

    task = asyncio.create_task(use())
    await anyio.wait_all_tasks_blocked()
    for _ in range(2):
        task.cancel()
        writers[0].cancel()
        await anyio.wait_all_tasks_blocked()
        assert not task.done()
    table.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert table.topics == ["t"]
    assert buffer.dropped == 0


@pytest.mark.anyio
async def test_flush_inside_the_one_writers_transaction_is_refused_at_once() -> None:
    table, store = Table(), object()
    buffer = buffer_of(table, one_writer=store)
    async with buffer.running():
        async with TransactionScope(store).entered():
            await buffer.flush()
            buffer.log(call())
            with pytest.raises(UsageError, match="own logger"):
                await buffer.flush()
        await buffer.flush()
    assert table.topics == ["t"]


@pytest.mark.anyio
async def test_the_calls_of_a_failed_block_go_to_the_outer_logger() -> None:
    outer_table, table = Table(), Table()
    outer = buffer_of(outer_table)
    async with outer.running():
        calls = transaction_calls(table, outer)

        async def fail() -> None:
            async with calls.block():
                calls.log(call("written"))
                await calls.flush()
                calls.log(call("pending"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        calls.log(call("late"))
        await outer.flush()
        assert table.topics == ["written"]
        assert outer_table.topics == ["written", "pending", "late"]
        assert set(table.rows) <= set(outer_table.rows)


@pytest.mark.anyio
async def test_the_calls_of_a_savepoint_share_the_fate_of_its_transaction() -> None:
    outer_table, table = Table(), Table()
    outer = buffer_of(outer_table)
    async with outer.running():
        calls = transaction_calls(table, outer)

        async def log_in_savepoint(topic: str, error: Exception | None) -> None:
            inner = transaction_calls(table, calls)
            async with inner.block():
                inner.log(call(topic))
                await inner.flush()
                if error is not None:
                    raise error

        async def fail() -> None:
            async with calls.block():
                await log_in_savepoint("kept", None)
                with pytest.raises(KeyError):
                    await log_in_savepoint("undone", KeyError())
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        await outer.flush()
    assert sorted(outer_table.topics) == ["kept", "undone"]


@pytest.mark.anyio
async def test_a_block_that_ends_well_hands_over_nothing_it_wrote() -> None:
    outer_table, table = Table(), Table()
    outer = buffer_of(outer_table)
    async with outer.running():
        calls = transaction_calls(table, outer)
        async with calls.block():
            calls.log(call())
            calls.log(call("bad"))
            await calls.flush()
        await outer.flush()
    assert (table.topics, outer_table.topics) == (["t"], [])
