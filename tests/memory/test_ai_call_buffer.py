"""The buffer behind log_call: order, bounds, outages, bad rows, threads, close and cancels."""

import asyncio
import logging
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from tests.memory.ai_call_table import Table, buffer_of, call
from workflow_adapters.ai_call_buffer import AICallBuffer
from workflow_adapters.clock import ManualClock
from workflow_adapters.errors import (
    BackendBusyError,
    BackendUnavailableError,
    OutcomeUnknownError,
    SchemaError,
    UsageError,
)
from workflow_adapters.transaction_scope import TransactionScope


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
    buffer = buffer_of(table, flush_timeout=timedelta(milliseconds=300))
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
