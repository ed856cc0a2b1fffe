"""A backend of one table to try the buffer of log_call on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel

from workflow_adapters.ai_call_buffer import AICallBuffer
from workflow_adapters.ai_call_transaction import TransactionAICalls
from workflow_adapters.clock import ManualClock
from workflow_adapters.inputs.ai_call_logger import CreateAICallInput
from workflow_adapters.records.ai_call_logger import AICallRecord


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
        self.refusal: Exception = ValueError("bad row")
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
            raise self.refusal
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
