"""Cancelling any call on the memory adapters, and any call that waits for the writer's turn."""

import anyio
import pytest
from anyio.abc import TaskStatus

from tests.cancellation.cases import CASES
from tests.cancellation.check import check_cancellation
from tests.cancellation.driver import Mode, cancel_at, cancel_everywhere
from tests.cancellation.world import Case
from workflow_adapters import CreateRunInput, ManualClock, open_memory
from workflow_adapters.memory import MemoryStore


def run(run_id: str) -> CreateRunInput:
    return CreateRunInput(id=run_id, workflow_id="w", workflow_name="n", workflow_type="t", input=None)


@pytest.mark.anyio
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_cancelled_call_has_its_whole_effect_or_none(case: Case) -> None:
    store = MemoryStore()

    async def is_idle() -> bool:
        return not store._turn._taken and store.savepoint() == 0

    async with open_memory(store=store, clock=ManualClock()) as adapters:
        await check_cancellation(case, adapters, is_idle)


@pytest.mark.anyio
@pytest.mark.parametrize("at_once", [True, False], ids=["as the turn is given", "before the turn is given"])
async def test_a_cancelled_wait_for_the_turn_does_not_lose_it(at_once: bool) -> None:
    async with open_memory() as adapters, anyio.create_task_group() as tasks:

        async def hold(release: anyio.Event, *, task_status: TaskStatus[None]) -> None:
            async with adapters.transaction():
                task_status.started()
                await release.wait()

        async def release_later(release: anyio.Event) -> None:
            await anyio.wait_all_tasks_blocked()
            release.set()

        async def attempt(n: int, mode: Mode) -> bool:
            release = anyio.Event()
            await tasks.start(hold, release)
            tasks.start_soon(release_later, release)
            reached = await cancel_at(
                lambda: adapters.persistence.create_run(run(f"{mode} {n}")),
                n,
                mode,
                just_before=release.set if at_once else lambda: None,
            )
            with anyio.fail_after(5):
                await adapters.persistence.create_run(run(f"after {mode} {n}"))
            return reached

        points = await cancel_everywhere(attempt)
        assert min(points.values()) >= 2
