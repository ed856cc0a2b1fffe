"""The calls logged in a transaction: written with it, not lost with it, and never taken for refused without reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.memory.ai_call_table import Table, buffer_of, call, transaction_calls
from workflow_adapters.errors import (
    BackendBusyError,
    BackendError,
    ConfigurationError,
    InvalidValueError,
    OutcomeUnknownError,
    SchemaError,
    UsageError,
)

OUTAGES = [
    UsageError("an inner block is open"),
    ConfigurationError("no right to insert"),
    SchemaError(["table ai_calls"], "migrate"),
    OutcomeUnknownError("cut"),
    BackendBusyError("busy"),
]
REFUSALS = [BackendError("too large"), InvalidValueError("topic", "topic", "is odd"), ValueError("the driver's own")]


@pytest.mark.anyio
@pytest.mark.parametrize("error", OUTAGES, ids=lambda error: type(error).__name__)
async def test_calls_that_could_not_be_tried_are_kept(error: Exception) -> None:
    outer_table, table = Table(), Table()
    outer = buffer_of(outer_table)
    async with outer.running():
        calls = transaction_calls(table, outer)
        async with calls.block():
            for n in range(3):
                calls.log(call(f"t{n}"))
            table.faults = [error]
            with pytest.raises(type(error)):
                await calls.flush()
            await calls.flush()
        await outer.flush()
    assert (table.topics, outer_table.topics) == (["t0", "t1", "t2"], [])


@pytest.mark.anyio
@pytest.mark.parametrize("error", OUTAGES, ids=lambda error: type(error).__name__)
async def test_the_background_writer_waits_through_whatever_is_not_about_the_row(error: Exception) -> None:
    table = Table()
    buffer = buffer_of(table, flush_timeout=timedelta(milliseconds=500))
    async with buffer.running():
        table.fault = error
        buffer.log(call())
        with pytest.raises(type(error)):
            await buffer.flush()
        table.fault = None
        await buffer.flush()
    assert table.topics == ["t"]
    assert buffer.dropped == 0


@pytest.mark.anyio
@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
async def test_a_call_that_was_refused_is_not_offered_again(error: Exception) -> None:
    outer_table, table = Table(), Table()
    table.refusal = error
    outer = buffer_of(outer_table)
    async with outer.running():
        calls = transaction_calls(table, outer)

        async def fail() -> None:
            async with calls.block():
                calls.log(call("good"))
                calls.log(call("bad"))
                await calls.flush()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        await outer.flush()
    assert outer_table.batches == [1]
    assert outer_table.topics == ["good"]


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
