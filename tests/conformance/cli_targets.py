"""What tests of the command line name as targets."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from conformance.backend import Env, Spec
from conformance.clause import Port
from conformance.testcase import case_for
from tests.conformance.misbehaving import Forgetful, Hanging, factory_of
from tests.conformance.pocket_ledger import PocketLedger, pocket
from workflow_adapters.inputs.step_ledger import NewStep
from workflow_adapters.ports.step_ledger import SupportsClearExcept
from workflow_adapters.records.step_ledger import StepClaim

COUNTED: Final = "COUNTED_IN"
make_ledger: Final = pocket
make_forgetful: Final = factory_of(Forgetful)
one: Final = Spec(port=Port.STEP_LEDGER, factory=pocket, name="pocket", capabilities=[SupportsClearExcept])
several: Final = [one, Spec(port=Port.STEP_LEDGER, factory=factory_of(Forgetful), name="forgetful")]
Case: Final = case_for(one, module=__name__)
nothing: Final = 7


@asynccontextmanager
async def dying(_: Env) -> AsyncGenerator[object]:
    os._exit(9)
    yield


def _beside(factory: Any, name: str) -> Spec:
    return Spec(port=Port.STEP_LEDGER, factory=factory, name=name, side_by_side=True)


class Stuck(Hanging):
    """Leaves a file where it hangs."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._mark = env.tmp_path / "hangs"

    async def claim(self, step: NewStep) -> StepClaim:
        self._mark.touch()
        return await super().claim(step)


class Counted(Forgetful):
    """Leaves a file, named after its process, for each time it is opened: once a clause, since it has no reset."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        if env.instance == "A":
            (Path(os.environ[COUNTED]) / f"{os.getpid()}-{env.namespace}").touch()


class Forking(PocketLedger):
    """Leaves a process behind that holds what it has inherited, and kills its own."""

    async def claim(self, step: NewStep) -> StepClaim:
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.sigtimedwait([], 30)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
        return await super().claim(step)


class Spawning(PocketLedger):
    """Leaves a child of the library's behind, which Python waits for at its end."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(20,)).start()


class HalfSaid(PocketLedger):
    async def claim(self, step: NewStep) -> StepClaim:
        raise ValueError("half a character: \udc80")


alone: Final = replace(_beside(factory_of(Counted), "alone"), capabilities=[SupportsClearExcept])
forking: Final = _beside(factory_of(Forking), "forking")
spawning: Final = _beside(factory_of(Spawning), "spawning")
half_said: Final = _beside(factory_of(HalfSaid), "half said")
hanging: Final = [_beside(factory_of(Stuck), "first"), _beside(factory_of(Stuck), "second")]
mortal: Final = [_beside(pocket, "pocket"), _beside(dying, "dying")]


class Ambiguous(PocketLedger):
    """Looks like a ledger and like a queue."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.clear


@asynccontextmanager
async def ambiguous(env: Env) -> AsyncGenerator[Ambiguous]:
    yield Ambiguous(env)


@asynccontextmanager
async def portless(_: Env) -> AsyncGenerator[object]:
    yield object()


@asynccontextmanager
async def broken(_: Env) -> AsyncGenerator[object]:
    raise OSError("no such host")
    yield
