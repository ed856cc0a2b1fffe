"""Worked examples for the bundle and the operations."""

from __future__ import annotations

from datetime import timedelta

from tests.worked_examples.examples import (
    FAR_AHEAD,
    HOUR,
    LONG_AGO,
    MINUTE,
    START,
    Pair,
    World,
    call,
    error_of,
    event,
    example,
    job,
    run,
    step,
)
from workflow_adapters import CreateLogInput, JobFilters, LogLevel, RunFilters, Status, UpdateRunInput


@example("Adapters.transaction", "a run, its jobs, its events and its steps are written together")
async def bundle_commits(w: World) -> Pair:
    async with w.adapters.transaction() as tx:
        await tx.persistence.create_run(run())
        await tx.job_queue.enqueue_parallel([job()])
        await tx.persistence.append_outbox_events([event()])
    jobs = await w.queue.get_jobs_by_workflow_run("r1")
    events = await w.persistence.get_unpublished_outbox_events()
    return (await w.persistence.get_run_status("r1"), len(jobs), len(events)), (Status.PENDING, 1, 1)


@example("Adapters.transaction", "or not at all")
async def bundle_rolls_back(w: World) -> Pair:
    stage_id = await w.stage_record_id("r0")
    try:
        async with w.adapters.transaction() as tx:
            await tx.persistence.create_run(run())
            await tx.job_queue.enqueue_parallel([job()])
            await tx.step_ledger.claim(step(stage_id))
            raise RuntimeError  # the block is to fail
    except RuntimeError:
        jobs = await w.queue.get_jobs_by_workflow_run("r1")
        return (await w.persistence.get_run("r1"), jobs, await w.ledger.list(stage_id)), (None, [], [])
    return "no error", "an error"


@example("Adapters.transaction", "if the block fails its logged calls go to the outer logger: what was paid stays paid")
async def bundle_keeps_calls(w: World) -> Pair:
    inside = -1.0
    try:
        async with w.adapters.transaction() as tx:
            tx.ai_call_logger.log_call(call(cost=1.5))
            inside = (await tx.ai_call_logger.get_stats("")).total_cost
            raise RuntimeError  # the block is to fail
    except RuntimeError:
        return (inside, (await w.logger.get_stats("")).total_cost), (1.5, 1.5)
    return "no error", "an error"


@example("migrate", "idempotent")
async def migrate_again(w: World) -> Pair:
    await w.adapters.migrate()
    await w.adapters.migrate()
    return await w.adapters.check_schema(), None


@example("migrate", "keeps what is stored")
async def migrate_keeps(w: World) -> Pair:
    await w.persistence.create_run(run())
    await w.adapters.migrate()
    return await w.persistence.get_run_status("r1"), Status.PENDING


@example("migrate", "the bundle works afterwards")
async def migrate_works(w: World) -> Pair:
    await w.adapters.migrate()
    return await w.queue.dequeue(), None


@example("check_schema", "silent on a current schema")
async def check_silent(w: World) -> Pair:
    return await w.adapters.check_schema(), None


@example("check_schema", "twice is harmless")
async def check_twice(w: World) -> Pair:
    await w.adapters.check_schema()
    return await w.adapters.check_schema(), None


@example("check_schema", "a read: works while a transaction is open")
async def check_in_transaction(w: World) -> Pair:
    async with w.adapters.transaction():
        return await w.adapters.check_schema(), None


@example("queue_stats", "by_status: every status; oldest_due_at")
async def stats_of_queue(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a"), job("b", scheduled_for=FAR_AHEAD), job("c", scheduled_for=LONG_AGO)])
    stats = await w.operations.queue_stats()
    nonzero = {status: count for status, count in stats.by_status.items() if count}
    return (set(stats.by_status), nonzero, stats.oldest_due_at), (set(Status), {Status.PENDING: 3}, LONG_AGO)


@example("queue_stats", "oldest_locked_at of the live leases")
async def stats_locked(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    claimed = await w.queue.dequeue()
    stats = await w.operations.queue_stats()
    return (stats.by_status[Status.RUNNING], stats.oldest_locked_at), (1, claimed.started_at)


@example("queue_stats", "an empty queue")
async def stats_empty(w: World) -> Pair:
    stats = await w.operations.queue_stats()
    return (sum(stats.by_status.values()), stats.oldest_due_at, stats.oldest_locked_at), (0, None, None)


@example("outbox_stats", "unpublished, oldest_unpublished_at, leased, dead")
async def stats_of_outbox(w: World) -> Pair:
    await w.persistence.append_outbox_events([event("a"), event("b", occurred_at=START - HOUR), event("c"), event("d")])
    a, *_ = await w.persistence.get_unpublished_outbox_events()
    await w.persistence.mark_outbox_events_published([a.id])
    lease = await w.persistence.lease_outbox_events(limit=1)
    left = [e for e in await w.persistence.get_unpublished_outbox_events() if e.id != lease.events[0].id]
    await w.persistence.move_outbox_event_to_dlq(left[-1].id)
    stats = await w.operations.outbox_stats()
    return (stats.unpublished, stats.leased, stats.dead), (1, 1, 1)


@example("outbox_stats", "oldest_unpublished_at is the oldest occurred_at")
async def stats_oldest(w: World) -> Pair:
    await w.persistence.append_outbox_events([event("a"), event("b", occurred_at=START - HOUR)])
    return (await w.operations.outbox_stats()).oldest_unpublished_at, START - HOUR


@example("outbox_stats", "an empty outbox")
async def stats_no_outbox(w: World) -> Pair:
    stats = await w.operations.outbox_stats()
    return (stats.unpublished, stats.oldest_unpublished_at, stats.leased, stats.dead), (0, None, 0, 0)


@example("list_runs", "newest first, in pages, after an opaque cursor")
async def list_runs_pages(w: World) -> Pair:
    for n in range(5):
        await w.persistence.create_run(run(f"r{n}"))
        w.clock.advance(MINUTE)
    pages, after = [], None
    for _ in range(3):
        page = await w.operations.list_runs(after=after, limit=2)
        pages.append([r.id for r in page.items])
        after = page.next
    return (pages, after), ([["r4", "r3"], ["r2", "r1"], ["r0"]], None)


@example("list_runs", "RunFilters(status, workflow_id, definition_version)")
async def list_runs_filters(w: World) -> Pair:
    await w.persistence.create_run(run("r1", definition_version="v"))
    await w.persistence.create_run(run("r2"))
    await w.persistence.create_run(run("r3", workflow_id="x"))
    await w.persistence.update_run("r2", UpdateRunInput(status=Status.FAILED))
    found = [
        [r.id for r in (await w.operations.list_runs(filters)).items]
        for filters in (
            RunFilters(status=Status.FAILED),
            RunFilters(workflow_id="x"),
            RunFilters(definition_version="v"),
            RunFilters(workflow_id="w", definition_version=None),
        )
    ]
    return found, [["r2"], ["r3"], ["r1"], ["r2"]]


@example("list_runs", "pages of at most 1,000; a string that is no cursor is refused")
async def list_runs_invalid(w: World) -> Pair:
    large = await error_of(w.operations.list_runs(limit=1001))
    cursor = await error_of(w.operations.list_runs(after="nonsense"))
    return (large, cursor), (("InvalidValueError", "limit"), ("InvalidValueError", "after"))


@example("list_jobs", "JobFilters(status, workflow_run_id)")
async def list_jobs_filters(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a"), job("b"), job("c", "r2")])
    await w.queue.dequeue()
    running = await w.operations.list_jobs(JobFilters(status=Status.RUNNING))
    of_run = await w.operations.list_jobs(JobFilters(workflow_run_id="r2"))
    return ([j.stage_id for j in running.items], [j.stage_id for j in of_run.items]), (["a"], ["c"])


@example("list_jobs", "newest first (created_at, then id, both descending)")
async def list_jobs_order(w: World) -> Pair:
    ids = await w.queue.enqueue_parallel([job("a"), job("b"), job("c")])
    return [j.id for j in (await w.operations.list_jobs()).items], sorted(ids, reverse=True)


@example("list_jobs", "nothing there: an empty page without a next one")
async def list_jobs_empty(w: World) -> Pair:
    page = await w.operations.list_jobs()
    return (page.items, page.next), ((), None)


async def _logs(w: World) -> None:
    await w.persistence.create_run(run())
    for n in range(3):
        await w.persistence.create_log(CreateLogInput(level=LogLevel.INFO, message=str(n), workflow_run_id="r1"))
        w.clock.advance(MINUTE)


@example("list_logs", "newest first")
async def list_logs_order(w: World) -> Pair:
    await _logs(w)
    return [log.message for log in (await w.operations.list_logs("r1")).items], ["2", "1", "0"]


@example("list_logs", "after an opaque cursor")
async def list_logs_pages(w: World) -> Pair:
    await _logs(w)
    first = await w.operations.list_logs("r1", limit=2)
    second = await w.operations.list_logs("r1", after=first.next, limit=2)
    return ([log.message for log in second.items], second.next), (["0"], None)


@example("list_logs", "an unknown run has none")
async def list_logs_unknown(w: World) -> Pair:
    return (await w.operations.list_logs("nope")).items, ()


async def _dead(w: World) -> None:
    await w.persistence.append_outbox_events([event("a"), event("b")])
    for one in await w.persistence.get_unpublished_outbox_events():
        await w.persistence.move_outbox_event_to_dlq(one.id)
        w.clock.advance(MINUTE)


@example("list_dead_outbox_events", "by dlq_at, newest first")
async def list_dead_order(w: World) -> Pair:
    await _dead(w)
    return [e.workflow_run_id for e in (await w.operations.list_dead_outbox_events()).items], ["b", "a"]


@example("list_dead_outbox_events", "after an opaque cursor")
async def list_dead_pages(w: World) -> Pair:
    await _dead(w)
    first = await w.operations.list_dead_outbox_events(limit=1)
    second = await w.operations.list_dead_outbox_events(after=first.next, limit=1)
    return [e.workflow_run_id for e in second.items], ["a"]


@example("list_dead_outbox_events", "none")
async def list_dead_none(w: World) -> Pair:
    return (await w.operations.list_dead_outbox_events()).items, ()


@example("get_job", "the job")
async def get_job_found(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job(payload={"x": 1})])
    found = await w.operations.get_job(id)
    return (found.id, found.payload, found.workflow_id), (id, {"x": 1}, "w")


@example("get_job", "None for an unknown id")
async def get_job_none(w: World) -> Pair:
    return await w.operations.get_job("nope"), None


@example("get_job", "a replaced job is gone")
async def get_job_replaced(w: World) -> Pair:
    [old] = await w.queue.enqueue_parallel([job()])
    await w.queue.enqueue_parallel([job()])
    return await w.operations.get_job(old), None


@example("requeue_job", "FAILED or CANCELLED to PENDING, attempt 0")
async def requeue_failed(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    claimed = await w.queue.dequeue()
    await w.queue.fail(id, "boom", False, claimed.fence)
    done = await w.operations.requeue_job(id)
    j = await w.operations.get_job(id)
    again = await w.queue.dequeue()
    return (done, j.status, j.attempt, again.attempt, again.started_at > claimed.started_at), (
        True,
        Status.PENDING,
        0,
        1,
        True,
    )


@example("requeue_job", "-> bool: False for a job in another status or unknown")
async def requeue_pending(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    return (await w.operations.requeue_job(id), await w.operations.requeue_job("nope")), (False, False)


@example("requeue_job", "a requeued job is due at once")
async def requeue_due(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job(scheduled_for=FAR_AHEAD)])
    await w.operations.cancel_job(id)
    await w.operations.requeue_job(id)
    return (await w.queue.dequeue()).job_id, id


@example("cancel_job", "PENDING or SUSPENDED")
async def cancel_pending(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    done = await w.operations.cancel_job(id)
    j = await w.operations.get_job(id)
    return (done, j.status, j.completed_at is not None), (True, Status.CANCELLED, True)


@example("cancel_job", "a RUNNING job is left alone")
async def cancel_running(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    await w.queue.dequeue()
    return (await w.operations.cancel_job(id), (await w.operations.get_job(id)).status), (False, Status.RUNNING)


@example("cancel_job", "False for an unknown job")
async def cancel_unknown(w: World) -> Pair:
    return await w.operations.cancel_job("nope"), False


@example("purge_jobs", "jobs that ended before the instant, at most limit, returning the count")
async def purge_ended_jobs(w: World) -> Pair:
    ids = await w.queue.enqueue_parallel([job("a"), job("b"), job("c")])
    for id in ids[:2]:
        await w.queue.complete(id)
    counts = [await w.operations.purge_jobs(FAR_AHEAD, limit) for limit in (1, 5, 5)]
    return (counts, [j.stage_id for j in await w.queue.get_jobs_by_workflow_run("r1")]), ([1, 1, 0], ["c"])


@example("purge_jobs", "a job that ended later stays")
async def purge_later_jobs(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    await w.queue.complete(id)
    return await w.operations.purge_jobs(LONG_AGO, 5), 0


@example("purge_jobs", "limit 0 deletes nothing")
async def purge_no_jobs(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    await w.queue.complete(id)
    return await w.operations.purge_jobs(FAR_AHEAD, 0), 0


@example("purge_outbox_events", "published before the instant; unpublished, leased and dead ones stay")
async def purge_published(w: World) -> Pair:
    await w.persistence.append_outbox_events([event("a"), event("b"), event("c"), event("d")])
    a, b, *_ = await w.persistence.get_unpublished_outbox_events()
    await w.persistence.mark_outbox_events_published([a.id])
    await w.persistence.move_outbox_event_to_dlq(b.id)
    await w.persistence.lease_outbox_events(limit=1)
    count = await w.operations.purge_outbox_events(FAR_AHEAD, 10)
    stats = await w.operations.outbox_stats()
    return (count, stats.unpublished, stats.leased, stats.dead), (1, 1, 1, 1)


@example("purge_outbox_events", "at most limit")
async def purge_published_limit(w: World) -> Pair:
    await w.persistence.append_outbox_events([event("a"), event("b")])
    await w.persistence.claim_unpublished_outbox_events()
    return [await w.operations.purge_outbox_events(FAR_AHEAD, 1) for _ in range(3)], [1, 1, 0]


@example("purge_outbox_events", "one published at the instant stays: before it only")
async def purge_published_boundary(w: World) -> Pair:
    await w.persistence.append_outbox_events([event("a")])
    await w.persistence.claim_unpublished_outbox_events()
    at = await w.operations.purge_outbox_events(START, 5)
    after = await w.operations.purge_outbox_events(START + timedelta(milliseconds=1), 5)
    return (at, after), (0, 1)


@example("purge_dead_outbox_events", "dead before the instant")
async def purge_dead(w: World) -> Pair:
    await _dead(w)
    count = await w.operations.purge_dead_outbox_events(START + MINUTE, 10)
    left = (await w.operations.list_dead_outbox_events()).items
    return (count, [e.workflow_run_id for e in left]), (1, ["b"])


@example("purge_dead_outbox_events", "at most limit")
async def purge_dead_limit(w: World) -> Pair:
    await _dead(w)
    return [await w.operations.purge_dead_outbox_events(FAR_AHEAD, 1) for _ in range(3)], [1, 1, 0]


@example("purge_dead_outbox_events", "nothing dead: 0")
async def purge_dead_none(w: World) -> Pair:
    await w.persistence.append_outbox_events([event("a")])
    return await w.operations.purge_dead_outbox_events(FAR_AHEAD, 10), 0


async def _keys(w: World) -> None:
    for key in ("done", "open"):
        await w.persistence.acquire_idempotency_key(key, "c", now=START)
    await w.persistence.complete_idempotency_key("done", "c", 1)


@example("purge_idempotency_keys", "completed keys acquired before the instant")
async def purge_completed_keys(w: World) -> Pair:
    await _keys(w)
    count = await w.operations.purge_idempotency_keys(True, FAR_AHEAD, 10)  # as the port has it
    return (count, type(await w.persistence.acquire_idempotency_key("open", "c")).__name__), (1, "InProgress")


@example("purge_idempotency_keys", "or those in progress")
async def purge_open_keys(w: World) -> Pair:
    await _keys(w)
    count = await w.operations.purge_idempotency_keys(False, FAR_AHEAD, 10)  # as the port has it
    return (count, type(await w.persistence.acquire_idempotency_key("done", "c")).__name__), (1, "Replay")


@example("purge_idempotency_keys", "a younger key stays")
async def purge_young_keys(w: World) -> Pair:
    await _keys(w)
    return await w.operations.purge_idempotency_keys(True, START, 10), 0  # as the port has it


@example("purge_ai_calls", "created before the instant")
async def purge_calls(w: World) -> Pair:
    w.logger.log_call(call(cost=1.0))
    w.clock.advance(MINUTE)
    w.logger.log_call(call(cost=2.0))
    await w.logger.flush()
    count = await w.operations.purge_ai_calls(START + MINUTE, 10)
    return (count, [c.cost for c in await w.logger.list_calls("")]), (1, [2.0])


@example("purge_ai_calls", "at most limit")
async def purge_calls_limit(w: World) -> Pair:
    for _ in range(2):
        w.logger.log_call(call())
    await w.logger.flush()
    return [await w.operations.purge_ai_calls(FAR_AHEAD, 1) for _ in range(3)], [1, 1, 0]


@example("purge_ai_calls", "nothing logged: 0")
async def purge_no_calls(w: World) -> Pair:
    return await w.operations.purge_ai_calls(FAR_AHEAD, 5), 0
