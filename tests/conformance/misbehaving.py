"""Ledgers that do what no adapter should: the run must survive each, and call it by its name."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import anyio

from conformance.backend import Env
from tests.conformance.pocket_ledger import PocketLedger, Rows
from workflow_adapters.inputs.step_ledger import NewStep
from workflow_adapters.records.step_ledger import StepClaim, StepRecord

Factory = Callable[[Env], AbstractAsyncContextManager[Any]]

# What leaks is kept here: the garbage collector must not mend it.
KEPT: Final[list[Any]] = []
SHARED: Final = Rows()


def factory_of(kind: type) -> Factory:
    @asynccontextmanager
    async def make(env: Env) -> AsyncGenerator[Any]:
        await anyio.lowlevel.checkpoint()
        yield kind(env)

    make.__name__ = kind.__name__
    return make


class Hanging(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        await anyio.sleep_forever()
        return await super().claim(step)


class HangingInTasks(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        if self._is_on_trio():
            import trio

            # Its own, not anyio's, ends in a group of all that was cancelled in it.
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                nursery.start_soon(trio.sleep_forever)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            tasks.start_soon(anyio.sleep_forever)
        return await super().claim(step)

    def _is_on_trio(self) -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return True
        return False


class Swallowing(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue


class Blocking(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        time.sleep(3600)  # noqa: ASYNC251 - that is what is wrong with it
        return await super().claim(step)


class Spinning(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        while step:
            pass
        return await super().claim(step)


class Cancelling(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        raise asyncio.CancelledError


class Interrupting(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        raise KeyboardInterrupt


class Raising(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        raise KeyError("stage")


class LeakingTasks(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        KEPT.append(asyncio.create_task(asyncio.sleep(3600)))
        return await super().claim(step)


class LeakingThreads(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        ended = threading.Event()
        KEPT.append(ended)
        threading.Thread(target=ended.wait, name="forgotten", daemon=True).start()
        return await super().claim(step)


class LeakingConnections(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        KEPT.append(socket.socket())
        return await super().claim(step)


class Nothing:
    """Every method is there and does nothing."""

    def __init__(self, env: Env) -> None:
        del env

    def __getattr__(self, name: str) -> Any:
        async def do_nothing(*_: object, **__: object) -> None:
            await anyio.lowlevel.checkpoint()

        return do_nothing


class Bare:
    """No method is there."""

    def __init__(self, env: Env) -> None:
        del env


class Synchronous(PocketLedger):
    def claim(self, step: NewStep) -> Any:
        return StepClaim(created=True, record=self.rows[step.stage_record_id, step.step_id])


class Forgetful(PocketLedger):
    """Both of two claims create; and one waits so that they overlap."""

    async def claim(self, step: NewStep) -> StepClaim:
        await anyio.sleep(0.01)
        return replace(await super().claim(step), created=True)


class Unstamped(PocketLedger):
    def _patched(self, record: StepRecord, patch: Any) -> StepRecord:
        return replace(super()._patched(record, patch), updated_at=record.updated_at)


class Shared(PocketLedger):
    """One store, whatever the namespace."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.rows = SHARED
