"""The reaper over both lease tiers, and retention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from tests.runtime.support import PATIENCE, enqueue, job
from tests.runtime.troubles import TROUBLES
from tests.worked_examples.examples import annotation, call, event, run
from workflow_adapters import (
    Adapters,
    ConfigurationError,
    ManualClock,
    Status,
    UpdateRunInput,
    UsageError,
    open_adapters,
)
from workflow_adapters.runtime import Event, Purger, Reaper, Retention
from workflow_adapters.runtime.loop import Loop
from workflow_adapters.runtime.service import run_workflow_service

pytestmark = pytest.mark.asyncio
PAST = timedelta(seconds=-1)


async def test_the_reaper_gives_back_and_ends_jobs(adapters: Adapters) -> None:
    await enqueue(adapters, "stale")
    await adapters.job_queue.dequeue()
    reaper = Reaper(adapters.job_queue, stale_after=PAST)
    await reaper.reap()
    assert (await job(adapters, "stale")).status is Status.PENDING
    await adapters.job_queue.dequeue()
    await Reaper(adapters.job_queue, absolute_timeout=PAST).reap()
    assert (await job(adapters, "stale")).status is Status.FAILED
    assert reaper.observation.counts[Event.JOBS_RELEASED] == 1


async def test_a_job_that_kills_its_workers_fails_in_the_end(adapters: Adapters) -> None:
    await enqueue(adapters, "poison")
    for _ in range(3):
        await adapters.job_queue.dequeue()
        await Reaper(adapters.job_queue, stale_after=PAST).reap()
    assert (await job(adapters, "poison")).status is Status.FAILED


class Away:
    """A database that is in trouble for two passes, whatever it is asked, and stops the loop in the third."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0
        self.loop: Loop | None = None

    def __getattr__(self, name: str) -> Any:
        if name in ("operations", "persistence", "job_queue"):
            return self

        async def call(*args: object) -> int:
            self.calls += 1
            if self.calls < 3:
                raise self.error
            assert self.loop is not None
            self.loop.stop()
            return 0

        return call


def loop_on(name: str, away: Any) -> Loop:
    soon = timedelta(milliseconds=1)
    loop: Loop = Reaper(away, every=soon)
    if name == "purger":
        loop = Purger(away, Retention(jobs=timedelta(0)), every=soon)
    away.loop = loop
    return loop


@pytest.mark.parametrize("name", ["reaper", "purger"])
@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
async def test_trouble_never_ends_a_loop(name: str, error: Exception) -> None:
    away = Away(error)
    loop = loop_on(name, away)
    with anyio.fail_after(PATIENCE):
        await loop.run()
    assert loop.observation.counts[Event(f"{name}_failed")] == 2


@pytest.mark.parametrize("name", ["reaper", "purger"])
async def test_a_fault_of_the_program_ends_a_loop(name: str) -> None:
    with pytest.raises(UsageError):
        await loop_on(name, Away(UsageError("the bundle is closed"))).run()


async def test_retention_deletes_what_is_due_and_nothing_else(adapters: Adapters) -> None:
    await adapters.persistence.create_run(run("old"))
    await adapters.persistence.create_run(run("going"))
    await adapters.persistence.update_run("old", UpdateRunInput(status=Status.COMPLETED))
    await adapters.persistence.append_annotations([annotation(run_id="old")])
    [done] = await enqueue(adapters, "done")
    await adapters.job_queue.complete(done)
    await enqueue(adapters, "open")
    await adapters.persistence.append_outbox_events([event("a"), event("b"), event("c")])
    a, b, _ = await adapters.persistence.get_unpublished_outbox_events()
    await adapters.persistence.mark_outbox_events_published([a.id])
    await adapters.persistence.move_outbox_event_to_dlq(b.id)
    await adapters.persistence.acquire_idempotency_key("k", "c")
    await adapters.persistence.complete_idempotency_key("k", "c", 1)
    adapters.ai_call_logger.log_call(call())
    await adapters.ai_call_logger.get_stats("")

    spans = dict.fromkeys(
        ("runs", "jobs", "published_events", "dead_events", "completed_keys", "abandoned_keys", "ai_calls"),
        timedelta(0),
    )
    batches: list[tuple[str, int]] = []
    tomorrow = ManualClock(datetime.now(UTC) + timedelta(days=1))
    purger = Purger(adapters, Retention(**spans), batch=1, clock=tomorrow)
    deleted = await purger.purge(lambda name, rows: batches.append((name, rows)))
    assert dict(deleted) == {
        "runs": 1,
        "jobs": 1,
        "published_events": 1,
        "dead_events": 1,
        "completed_keys": 1,
        "abandoned_keys": 0,
        "ai_calls": 1,
    }
    assert batches[:2] == [("runs", 1), ("runs", 0)]
    assert await adapters.persistence.get_run("going") is not None
    assert (await job(adapters, "open")).status is Status.PENDING
    assert sum((await purger.purge()).values()) == 0


async def test_what_is_kept_for_ever_stays(adapters: Adapters) -> None:
    await adapters.persistence.create_run(run("old"))
    await adapters.persistence.update_run("old", UpdateRunInput(status=Status.COMPLETED))
    later = ManualClock(datetime.now(UTC) + timedelta(days=10_000))
    assert sum((await Purger(adapters, Retention(), clock=later).purge()).values()) == 0


async def test_an_age_that_no_row_can_have_deletes_nothing(adapters: Adapters) -> None:
    await adapters.persistence.create_run(run("old"))
    await adapters.persistence.update_run("old", UpdateRunInput(status=Status.COMPLETED))
    ages = dict.fromkeys(("runs", "jobs", "published_events", "dead_events", "completed_keys"), timedelta.max)
    assert sum((await Purger(adapters, Retention(**ages)).purge()).values()) == 0


async def test_a_service_asks_for_a_function_that_opens_the_bundle() -> None:
    async def handler(ctx: object) -> None:
        return None

    opened: Any = open_adapters("memory://")
    with pytest.raises(ConfigurationError, match="lambda"):
        async with run_workflow_service(opened, handler):
            pass


async def test_a_reaper_faster_than_the_lease_is_refused() -> None:
    async def handler(ctx: object) -> None:
        return None

    with pytest.raises(ConfigurationError, match="shorter than the worker's lease"):
        async with run_workflow_service(
            lambda: open_adapters("memory://"), handler, reaper={"stale_after": timedelta(seconds=1)}
        ):
            raise AssertionError


async def test_what_the_services_block_raises_comes_out_as_it_is() -> None:
    async def handler(ctx: object) -> None:
        return None

    with pytest.raises(ValueError, match="mine"):
        async with run_workflow_service(lambda: open_adapters("memory://"), handler):
            raise ValueError("mine")
