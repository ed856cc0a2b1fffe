"""Pages, statistics and retention, and sums of costs."""

from datetime import timedelta
from typing import Any

import pytest

from tests.memory.inputs import START, ai_call, event, job, run
from workflow_adapters import (
    Adapters,
    CreateLogInput,
    InvalidValueError,
    JobFilters,
    LogLevel,
    ManualClock,
    Page,
    RunFilters,
    Status,
    UpdateRunInput,
    open_memory,
)

pytestmark = pytest.mark.anyio

SECOND = timedelta(seconds=1)


async def test_pages_are_newest_first_and_go_on_while_rows_come_and_go() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        for n in range(5):
            await adapters.persistence.create_run(run(f"r{n}"))
            clock.advance(SECOND)
        first = await adapters.operations.list_runs(limit=2)
        assert [r.id for r in first.items] == ["r4", "r3"]
        await adapters.persistence.create_run(run("new"))
        await adapters.persistence.delete_run("r3")
        rest: list[str] = []
        page: Page[Any] = first
        while page.next is not None and len(rest) < 9:
            page = await adapters.operations.list_runs(after=page.next, limit=1)
            rest += [r.id for r in page.items]
        assert rest == ["r2", "r1", "r0"]


async def test_a_page_that_is_just_full_has_no_next() -> None:
    async with open_memory() as adapters:
        await adapters.job_queue.enqueue_parallel([job("a"), job("b")])
        page = await adapters.operations.list_jobs(limit=2)
        assert ([j.stage_id for j in page.items], page.next) == (["b", "a"], None)
        assert (await adapters.operations.list_jobs(JobFilters(workflow_run_id="x"))).items == ()


@pytest.mark.parametrize(
    ("filters", "listed"),
    [
        (None, ["free", "pinned"]),
        (RunFilters(), ["free", "pinned"]),
        (RunFilters(workflow_id=None, status=None), ["free", "pinned"]),
        (RunFilters(status=Status.FAILED), ["free"]),
        (RunFilters(definition_version="1"), ["pinned"]),
        (RunFilters(definition_version=None), ["free"]),
        (RunFilters(workflow_id="other"), []),
    ],
)
async def test_left_out_is_no_filter_and_none_is_null_where_that_can_be(
    filters: RunFilters | None, listed: list[str]
) -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        await adapters.persistence.create_run(run("pinned", definition_version="1"))
        clock.advance(SECOND)
        await adapters.persistence.create_run(run("free"))
        await adapters.persistence.update_run("free", UpdateRunInput(status=Status.FAILED))
        assert [r.id for r in (await adapters.operations.list_runs(filters)).items] == listed


async def test_a_cursor_of_another_listing_is_refused() -> None:
    async with open_memory() as adapters:
        for run_id in ("a", "b"):
            await adapters.persistence.create_run(run(run_id))
        page = await adapters.operations.list_runs(limit=1)
        with pytest.raises(InvalidValueError, match="list_jobs"):
            await adapters.operations.list_jobs(after=page.next)


async def test_a_long_id_fits_in_a_cursor() -> None:
    async with open_memory() as adapters:
        for n in range(2):
            await adapters.persistence.create_run(run("é" * 399 + str(n)))
        page = await adapters.operations.list_runs(limit=1)
        assert (await adapters.operations.list_runs(after=page.next)).items[0].id == "é" * 399 + "0"


async def test_logs_are_listed_newest_first() -> None:
    async with open_memory() as adapters:
        await adapters.persistence.create_run(run())
        for message in ("one", "two", "three"):
            log = CreateLogInput(level=LogLevel.INFO, message=message, workflow_run_id="r", metadata={"n": 1})
            await adapters.persistence.create_log(log)
        page = await adapters.operations.list_logs("r", limit=2)
        older = await adapters.operations.list_logs("r", after=page.next)
        assert [log.message for log in (*page.items, *older.items)] == ["three", "two", "one"]


async def test_stats_of_the_queue() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        empty = await adapters.operations.queue_stats()
        assert (empty.oldest_due_at, empty.oldest_locked_at) == (None, None)
        await adapters.job_queue.enqueue_parallel(
            [job("due", scheduled_for=START - SECOND), job("now"), job("later", scheduled_for=START + SECOND)]
        )
        stats = await adapters.operations.queue_stats()
        assert stats.oldest_due_at == START - SECOND
        await adapters.job_queue.dequeue()
        stats = await adapters.operations.queue_stats()
        assert stats.by_status == {**dict.fromkeys(Status, 0), Status.PENDING: 2, Status.RUNNING: 1}
        assert stats.oldest_locked_at == START


async def test_purges_take_the_oldest_up_to_the_limit_and_nothing_that_may_not_go() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        for stage in ("a", "b", "c"):
            (job_id,) = await adapters.job_queue.enqueue_parallel([job(stage)])
            await adapters.job_queue.complete(job_id)
            clock.advance(SECOND)
        await adapters.job_queue.enqueue_parallel([job("pending")])
        assert await adapters.operations.purge_jobs(START + 2 * SECOND, 1) == 1
        assert await adapters.operations.purge_jobs(START + 2 * SECOND, 9) == 1
        left = await adapters.job_queue.get_jobs_by_workflow_run("r")
        assert [j.stage_id for j in left] == ["c", "pending"]


async def test_purges_of_events_and_keys_tell_their_kinds_apart() -> None:
    clock = ManualClock()
    async with open_memory(clock=clock) as adapters:
        p, operations = adapters.persistence, adapters.operations
        await p.append_outbox_events([event("published"), event("dead"), event("waiting")])
        by_run = {e.workflow_run_id: e.id for e in await p.get_unpublished_outbox_events()}
        await p.mark_outbox_events_published([by_run["published"], by_run["dead"]])
        await p.move_outbox_event_to_dlq(by_run["dead"])
        for key in ("done", "in progress"):
            await p.acquire_idempotency_key(key, "c")
        await p.complete_idempotency_key("done", "c", None)
        end = clock.advance(SECOND)
        assert await operations.purge_outbox_events(end, 9) == 1
        assert await operations.purge_dead_outbox_events(end, 9) == 1
        assert await operations.purge_idempotency_keys(True, end, 9) == 1
        assert await operations.purge_idempotency_keys(True, end, 9) == 0
        assert await operations.purge_idempotency_keys(False, end, 9) == 1
        assert [e.workflow_run_id for e in await p.get_unpublished_outbox_events()] == ["waiting"]


async def costs(adapters: Adapters, *values: float) -> float:
    await adapters.ai_call_logger.log_batch_results("b", [ai_call(cost=value) for value in values])
    return (await adapters.ai_call_logger.get_stats("")).total_cost


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ((0.1, 0.2), 0.3),
        ((0.1,) * 10, 1.0),
        ((1e308, 5e-324, -1e308), 5e-324),
        ((1e16, 1.0, -1e16), 1.0),
        ((), 0.0),
    ],
)
async def test_costs_are_summed_as_decimals_and_exactly(values: tuple[float, ...], total: float) -> None:
    async with open_memory() as adapters:
        assert await costs(adapters, *values) == total


async def test_results_of_a_batch_are_stored_once_and_say_where_they_come_from() -> None:
    async with open_memory() as adapters:
        logger: Any = adapters.ai_call_logger
        results = [
            ai_call("first", request_id="1"),
            ai_call("second", request_id="1"),
            ai_call("fallback", metadata={"requestId": "2", "x": 1}),
            ai_call("none"),
            ai_call("none"),
        ]
        for _ in range(2):
            await logger.log_batch_results("b", results)
        calls = await logger.list_calls("")
        assert [(c.topic, c.batch_id, c.request_id) for c in calls] == [
            ("first", "b", "1"),
            ("fallback", "b", "2"),
            *[("none", "b", None)] * 4,
        ]
        assert calls[1].metadata == {"requestId": "2", "x": 1, "batchId": "b"}
        logger.log_call(ai_call("skipped", batch_id="b", request_id="1"))
        logger.log_call(ai_call("old", metadata={"batchId": "old"}))
        assert await logger.is_recorded("b")
        assert await logger.is_recorded("old")
        assert not await logger.is_recorded("other")
        assert [c.topic for c in await logger.list_calls("o")] == ["old"]
        assert await logger.list_calls("s") == []


async def test_a_fallback_that_is_no_key_is_refused_with_its_path() -> None:
    async with open_memory() as adapters:
        with pytest.raises(InvalidValueError, match=r"results\[1\].metadata.requestId"):
            await adapters.ai_call_logger.log_batch_results("b", [ai_call(), ai_call(metadata={"requestId": ""})])
        assert not await adapters.ai_call_logger.is_recorded("b")
