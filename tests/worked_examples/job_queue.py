"""Worked examples for the job queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.worked_examples.examples import (
    FAR_AHEAD,
    HOUR,
    LONG_AGO,
    SECOND,
    START,
    Pair,
    World,
    error_of,
    example,
    job,
)
from workflow_adapters import (
    LEASE_ABSOLUTE_CAP,
    LEASE_HEARTBEAT_LOST,
    JobAckFence,
    JobAckOutcome,
    JobQueueFairness,
    JobRecord,
    ServedDefinition,
    Status,
    new_id,
)

ACKNOWLEDGED = JobAckOutcome.ACKNOWLEDGED
SUPERSEDED = JobAckOutcome.SUPERSEDED
PAST = timedelta(seconds=-1)


async def _only(w: World) -> JobRecord:
    [found] = await w.queue.get_jobs_by_workflow_run("r1")
    return found


async def _claimed(w: World, **fields: Any) -> Any:
    await w.queue.enqueue_parallel([job(**fields)])
    return await w.queue.dequeue()


async def _lost(w: World) -> tuple[Any, Any]:
    """Two claims of one job, the first of which lost its lease."""
    first = await _claimed(w)
    await w.queue.release_stale_jobs(PAST)
    return first, await w.queue.dequeue()


@example(
    "enqueue_parallel", "one id per input, in order; a repeated pair: the last input wins, every position gets its id"
)
async def enqueue_repeated(w: World) -> Pair:
    ids = await w.queue.enqueue_parallel([job("a", priority=1), job("b"), job("a", priority=9)])
    jobs = {j.stage_id: j for j in await w.queue.get_jobs_by_workflow_run("r1")}
    return (ids, jobs["a"].priority), ([jobs["a"].id, jobs["b"].id, jobs["a"].id], 9)


@example("enqueue_parallel", "an existing row for the pair, whatever its status, is replaced by a fresh PENDING row")
async def enqueue_replaces(w: World) -> Pair:
    claimed = await _claimed(w)
    await w.queue.fail(claimed.job_id, "boom")
    [id] = await w.queue.enqueue_parallel([job(scheduled_for=FAR_AHEAD)])
    j = await _only(w)
    observed = (j.id == id, id != claimed.job_id, j.status, j.attempt, j.worker_id, j.last_error, j.completed_at)
    return (*observed, j.started_at, j.next_poll_at), (True, True, Status.PENDING, 0, None, None, None, None, FAR_AHEAD)


@example("enqueue_parallel", "stored on the payload and stripped again; a job without a payload reads back {}")
async def enqueue_payload(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a", payload={"x": 1}, group_key="g", definition_version="v"), job("b")])
    a, b = sorted(await w.queue.get_jobs_by_workflow_run("r1"), key=lambda j: j.stage_id)
    observed = (a.payload, a.workflow_id, a.group_key, a.definition_version, b.payload, a.max_attempts)
    return observed, ({"x": 1}, "w", "g", "v", {}, 3)


@example("delete_by_run_and_stages", "whatever their status")
async def delete_any_status(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a"), job("b"), job("c")])
    await w.queue.dequeue()
    count = await w.queue.delete_by_run_and_stages("r1", ["a", "b", "nope"])
    return (count, [j.stage_id for j in await w.queue.get_jobs_by_workflow_run("r1")]), (2, ["c"])


@example("delete_by_run_and_stages", "Empty: 0")
async def delete_empty(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    return await w.queue.delete_by_run_and_stages("r1", []), 0


@example("delete_by_run_and_stages", "only of that run")
async def delete_other_run(w: World) -> Pair:
    await w.queue.enqueue_parallel([job(), job(run_id="r2")])
    count = await w.queue.delete_by_run_and_stages("r2", ["s1"])
    return (count, (await _only(w)).workflow_run_id), (1, "r1")


@example("dequeue", "the due PENDING job with the highest priority, then the oldest, then in insertion order")
async def dequeue_order(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a"), job("b"), job("c", priority=9), job("d", scheduled_for=FAR_AHEAD)])
    claimed = [await w.queue.dequeue() for _ in range(4)]
    return [c and c.stage_id for c in claimed], ["c", "a", "b", None]


@example("dequeue", "RUNNING, attempt + 1, worker_id, locked_at = started_at = now")
async def dequeue_stamps(w: World) -> Pair:
    worker = w.queue.adopt_worker_id("w-1")
    claimed = await _claimed(w)
    j = await _only(w)
    observed = (j.status, j.attempt, j.worker_id, j.locked_at == j.started_at == claimed.started_at, j.last_error)
    return observed, (Status.RUNNING, 1, worker, True, None)


@example("dequeue", "due: next_poll_at null or <= now", clock=True)
async def dequeue_due_instant(w: World) -> Pair:
    await w.queue.enqueue_parallel([job(scheduled_for=START + SECOND)])
    w.clock.advance(SECOND - timedelta(milliseconds=1))
    early = await w.queue.dequeue()
    w.clock.advance(timedelta(milliseconds=1))
    return (early, (await w.queue.dequeue()).stage_id), (None, "s1")


@example("dequeue", "serves as for runs, against the payload; empty claims nothing; 'all' claims any")
async def dequeue_serves(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a", definition_version="v1"), job("b", workflow_id="x")])
    none = await w.queue.dequeue(serves=[])
    foreign = await w.queue.dequeue(serves=[ServedDefinition(workflow_id="w", version="v2")])
    unpinned = await w.queue.dequeue(serves=[ServedDefinition(workflow_id="x", version="v2")])
    anything = await w.queue.dequeue(serves="all")
    return (none, foreign, unpinned.stage_id, anything.stage_id), (None, None, "b", "a")


@example("dequeue", "started_at strictly increases from one claim of a job to its next, even within one millisecond")
async def dequeue_fence_increases(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    fences = []
    for _ in range(3):
        claimed = await w.queue.dequeue()
        fences.append(claimed.fence)
        await w.queue.defer(claimed.job_id, LONG_AGO, "later", claimed.fence)
    observed = ([f.attempt for f in fences], fences[0].started_at < fences[1].started_at < fences[2].started_at)
    return observed, ([1, 1, 1], True)


@example("complete", "COMPLETED, completed_at")
async def complete_row(w: World) -> Pair:
    claimed = await _claimed(w)
    outcome = await w.queue.complete(claimed.job_id, claimed.fence)
    j = await _only(w)
    return (outcome, j.status, j.completed_at is not None), (ACKNOWLEDGED, Status.COMPLETED, True)


@example("complete", "with a fence: otherwise nothing is written and SUPERSEDED returned")
async def complete_superseded(w: World) -> Pair:
    old, new = await _lost(w)
    late = await w.queue.complete(old.job_id, old.fence)
    status = (await _only(w)).status
    return (late, status, await w.queue.complete(new.job_id, new.fence)), (SUPERSEDED, Status.RUNNING, ACKNOWLEDGED)


@example("complete", "SUPERSEDED also for a deleted job; without a fence NotFoundError for an unknown job")
async def complete_unknown(w: World) -> Pair:
    fence = JobAckFence(started_at=START, attempt=1)
    failed = await error_of(w.queue.complete("nope"))
    return (await w.queue.complete("nope", fence), failed), (SUPERSEDED, ("NotFoundError", "job", "nope"))


@example("complete", "Without: unconditional, ACKNOWLEDGED")
async def complete_unfenced(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    return (await w.queue.complete(id), (await _only(w)).status), (ACKNOWLEDGED, Status.COMPLETED)


@example("suspend", "SUSPENDED, next_poll_at, worker and lock cleared")
async def suspend_row(w: World) -> Pair:
    claimed = await _claimed(w)
    outcome = await w.queue.suspend(claimed.job_id, FAR_AHEAD, claimed.fence)
    j = await _only(w)
    observed = (outcome, j.status, j.next_poll_at, j.worker_id, j.locked_at)
    return observed, (ACKNOWLEDGED, Status.SUSPENDED, FAR_AHEAD, None, None)


@example("suspend", "SUSPENDED jobs are never dequeued")
async def suspend_not_dequeued(w: World) -> Pair:
    claimed = await _claimed(w)
    await w.queue.suspend(claimed.job_id, LONG_AGO, claimed.fence)
    return await w.queue.dequeue(), None


@example("suspend", "fenced")
async def suspend_superseded(w: World) -> Pair:
    old, _ = await _lost(w)
    return (await w.queue.suspend(old.job_id, START, old.fence), (await _only(w)).status), (SUPERSEDED, Status.RUNNING)


@example("fail", "with should_retry and attempt < max_attempts: PENDING, next_poll_at = now + backoff, attempt kept")
async def fail_retries(w: World) -> Pair:
    claimed = await _claimed(w)
    outcome = await w.queue.fail(claimed.job_id, "boom", True, claimed.fence)
    j = await _only(w)
    observed = (outcome, j.status, j.attempt, j.last_error, j.worker_id, j.locked_at, j.completed_at)
    due = j.next_poll_at is not None and 1.9 * SECOND <= j.next_poll_at - claimed.started_at < 60 * SECOND
    return (*observed, due), (ACKNOWLEDGED, Status.PENDING, 1, "boom", None, None, None, True)


@example("fail", "else FAILED with completed_at")
async def fail_for_good(w: World) -> Pair:
    claimed = await _claimed(w)
    await w.queue.fail(claimed.job_id, "a\0b", False, claimed.fence)
    j = await _only(w)
    return (j.status, j.last_error, j.completed_at is not None), (Status.FAILED, "a\ufffdb", True)


@example("fail", "attempts spent: FAILED although should_retry", clock=True)
async def fail_spent(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    statuses = []
    for _ in range(3):
        claimed = await w.queue.dequeue()
        await w.queue.fail(claimed.job_id, "boom", should_retry=True, fence=claimed.fence)
        statuses.append((await _only(w)).status)
        w.clock.advance(HOUR)
    return statuses, [Status.PENDING, Status.PENDING, Status.FAILED]


@example("fail", "fenced: a late failure changes nothing")
async def fail_superseded(w: World) -> Pair:
    old, _ = await _lost(w)
    outcome = await w.queue.fail(old.job_id, "late", False, old.fence)
    return (outcome, (await _only(w)).status), (SUPERSEDED, Status.RUNNING)


@example("defer", "PENDING, next_poll_at, attempt - 1, worker and lock cleared, last_error = reason")
async def defer_row(w: World) -> Pair:
    claimed = await _claimed(w)
    outcome = await w.queue.defer(claimed.job_id, FAR_AHEAD, "not mine", claimed.fence)
    j = await _only(w)
    observed = (outcome, j.status, j.next_poll_at, j.attempt, j.worker_id, j.locked_at, j.last_error)
    return observed, (ACKNOWLEDGED, Status.PENDING, FAR_AHEAD, 0, None, None, "not mine")


@example("defer", "never below 0")
async def defer_floor(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    await w.queue.defer(id, FAR_AHEAD, "x")
    return (await _only(w)).attempt, 0


@example("defer", "a job can be deferred any number of times")
async def defer_often(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    for _ in range(10):
        claimed = await w.queue.dequeue()
        await w.queue.defer(claimed.job_id, LONG_AGO, "later", claimed.fence)
    return (await w.queue.dequeue()).attempt, 1


@example("release_stale_jobs", "RUNNING with locked_at older: PENDING, worker and lock cleared, attempt kept")
async def stale_released(w: World) -> Pair:
    await _claimed(w)
    count = await w.queue.release_stale_jobs(PAST)
    j = await _only(w)
    observed = (
        count,
        j.status,
        j.attempt,
        j.worker_id,
        j.locked_at,
        str(j.last_error).startswith(f"{LEASE_HEARTBEAT_LOST}: "),
    )
    return observed, (1, Status.PENDING, 1, None, None, True)


@example("release_stale_jobs", "a live lease stays: 5 minutes by default")
async def stale_live(w: World) -> Pair:
    await _claimed(w)
    return (await w.queue.release_stale_jobs(), (await _only(w)).status), (0, Status.RUNNING)


@example("release_stale_jobs", "With fail_spent a job that has no attempt left is FAILED instead (same prefix)")
async def stale_spent(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    for _ in range(3):
        await w.queue.dequeue()
        await w.queue.release_stale_jobs(PAST, fail_spent=True)
    j = await _only(w)
    observed = (j.status, j.attempt, str(j.last_error).startswith(LEASE_HEARTBEAT_LOST), j.completed_at is not None)
    return observed, (Status.FAILED, 3, True, True)


@example("expire_runaway_jobs", "RUNNING whose started_at is older: FAILED terminally, LEASE_ABSOLUTE_CAP")
async def runaway_failed(w: World) -> Pair:
    await _claimed(w)
    count = await w.queue.expire_runaway_jobs(PAST)
    j = await _only(w)
    observed = (count, j.status, j.completed_at is not None, str(j.last_error).startswith(f"{LEASE_ABSOLUTE_CAP}: "))
    return observed, (1, Status.FAILED, True, True)


@example("expire_runaway_jobs", "started_at is never refreshed: a heartbeat does not help", clock=True)
async def runaway_touched(w: World) -> Pair:
    claimed = await _claimed(w)
    w.clock.advance(HOUR)
    await w.queue.touch_job(claimed.job_id)
    return (await w.queue.release_stale_jobs(), await w.queue.expire_runaway_jobs(HOUR - SECOND)), (0, 1)


@example("expire_runaway_jobs", "a younger job stays")
async def runaway_young(w: World) -> Pair:
    await _claimed(w)
    return (await w.queue.expire_runaway_jobs(HOUR), (await _only(w)).status), (0, Status.RUNNING)


@example("touch_job", "locked_at = now, only if RUNNING", clock=True)
async def touch_running(w: World) -> Pair:
    claimed = await _claimed(w)
    w.clock.advance(HOUR)
    await w.queue.touch_job(claimed.job_id)
    j = await _only(w)
    return (j.locked_at, j.started_at), (START + HOUR, START)


@example("touch_job", "otherwise a silent no-op")
async def touch_pending(w: World) -> Pair:
    [id] = await w.queue.enqueue_parallel([job()])
    await w.queue.touch_job(id)
    return (await _only(w)).locked_at, None


@example("touch_job", "an unknown job too")
async def touch_unknown(w: World) -> Pair:
    return await w.queue.touch_job("nope"), None


@example("cancel_by_run", "PENDING and SUSPENDED to CANCELLED with completed_at; RUNNING untouched")
async def cancel_run(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a", priority=9), job("b", priority=8), job("c")])
    await w.queue.dequeue()
    b = await w.queue.dequeue()
    await w.queue.suspend(b.job_id, FAR_AHEAD, b.fence)
    count = await w.queue.cancel_by_run("r1")
    found = {j.stage_id: (j.status, j.completed_at is not None) for j in await w.queue.get_jobs_by_workflow_run("r1")}
    cancelled = (Status.CANCELLED, True)
    return (count, found), (2, {"a": (Status.RUNNING, False), "b": cancelled, "c": cancelled})


@example("cancel_by_run", "-> int, 0 for an unknown run")
async def cancel_unknown(w: World) -> Pair:
    return await w.queue.cancel_by_run("nope"), 0


@example("cancel_by_run", "a cancelled job is not dequeued")
async def cancel_not_dequeued(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    await w.queue.cancel_by_run("r1")
    return await w.queue.dequeue(), None


@example("get_jobs_by_workflow_run", "by created_at then id")
async def jobs_order(w: World) -> Pair:
    ids = await w.queue.enqueue_parallel([job("b"), job("a")])
    return [j.id for j in await w.queue.get_jobs_by_workflow_run("r1")], sorted(ids)


@example("get_jobs_by_workflow_run", "only of that run")
async def jobs_of_run(w: World) -> Pair:
    await w.queue.enqueue_parallel([job(), job(run_id="r2")])
    return [j.workflow_run_id for j in await w.queue.get_jobs_by_workflow_run("r2")], ["r2"]


@example("get_jobs_by_workflow_run", "[] for an unknown run")
async def jobs_unknown(w: World) -> Pair:
    return await w.queue.get_jobs_by_workflow_run("nope"), []


@example("adopt_worker_id", "returns the id that will be stamped")
async def adopt_stamped(w: World) -> Pair:
    adopted = w.queue.adopt_worker_id("host-1")
    await _claimed(w)
    return (adopted, (await _only(w)).worker_id), ("host-1", "host-1")


@example("adopt_worker_id", "sync")
async def adopt_sync(w: World) -> Pair:
    return type(w.queue.adopt_worker_id("host-1")), str


@example("adopt_worker_id", "an empty id is refused")
async def adopt_invalid(w: World) -> Pair:
    async def adopt() -> None:
        w.queue.adopt_worker_id("")

    return await error_of(adopt()), ("InvalidValueError", "worker_id")


@example("fairness_group_by", "None when fairness is off")
async def group_by_off(w: World) -> Pair:
    return w.queue.fairness_group_by, None


@example(
    "fairness_group_by",
    "the dotted payload path",
    fairness=JobQueueFairness(max_concurrent_per_group=1, group_by="a.b"),
)
async def group_by_path(w: World) -> Pair:
    return w.queue.fairness_group_by, "a.b"


@example("fairness_group_by", "_groupKey by default", fairness=JobQueueFairness(max_concurrent_per_group=1))
async def group_by_default(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a", group_key="g"), job("b", group_key="g"), job("c", group_key="h")])
    claimed = [await w.queue.dequeue() for _ in range(3)]
    return (w.queue.fairness_group_by, [c and c.stage_id for c in claimed]), ("_groupKey", ["a", "c", None])


@example("wait_for_jobs", "True as soon as a job may be due")
async def wait_due(w: World) -> Pair:
    await w.queue.enqueue_parallel([job()])
    return await w.queue.wait_for_jobs(timedelta(seconds=10)), True


@example("wait_for_jobs", "False at the timeout")
async def wait_timeout(w: World) -> Pair:
    return await w.queue.wait_for_jobs(timedelta(milliseconds=20)), False


@example("wait_for_jobs", "a job that is not due does not count")
async def wait_not_due(w: World) -> Pair:
    await w.queue.enqueue_parallel([job(scheduled_for=FAR_AHEAD)])
    return await w.queue.wait_for_jobs(timedelta(milliseconds=20)), False


@example("dequeue_many", "in claim order")
async def many_order(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a"), job("b", priority=9), job("c")])
    return [c.stage_id for c in await w.queue.dequeue_many(2)], ["b", "a"]


@example("dequeue_many", "[] when none")
async def many_none(w: World) -> Pair:
    return await w.queue.dequeue_many(5), []


@example("dequeue_many", "serves as for dequeue")
async def many_serves(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a"), job("b", workflow_id="x")])
    served = await w.queue.dequeue_many(5, serves=[ServedDefinition(workflow_id="x", version="v")])
    return ([c.stage_id for c in served], await w.queue.dequeue_many(5, serves=[])), (["b"], [])


@example("complete_many", "each fenced on its own, answers in order")
async def complete_many_mixed(w: World) -> Pair:
    await w.queue.enqueue_parallel([job("a"), job("b")])
    a, b = await w.queue.dequeue_many(2)
    wrong = JobAckFence(started_at=a.started_at, attempt=a.attempt + 1)
    answers = await w.queue.complete_many([(b.job_id, b.fence), (a.job_id, wrong), (new_id(), wrong)])
    statuses = {j.stage_id: j.status for j in await w.queue.get_jobs_by_workflow_run("r1")}
    return (answers, statuses), ([ACKNOWLEDGED, SUPERSEDED, SUPERSEDED], {"a": Status.RUNNING, "b": Status.COMPLETED})


@example("complete_many", "nothing to complete: []")
async def complete_many_empty(w: World) -> Pair:
    return await w.queue.complete_many([]), []


@example("complete_many", "a fence holds once: the second completion is SUPERSEDED")
async def complete_many_twice(w: World) -> Pair:
    claimed = await _claimed(w)
    claims = [(claimed.job_id, claimed.fence)]
    return (await w.queue.complete_many(claims), await w.queue.complete_many(claims)), ([ACKNOWLEDGED], [SUPERSEDED])


@example(
    "heartbeat", "refreshes locked_at of exactly the claims that still hold, SUPERSEDED for the others", clock=True
)
async def heartbeat_mixed(w: World) -> Pair:
    old, new = await _lost(w)
    w.clock.advance(HOUR)
    answers = await w.queue.heartbeat([(old.job_id, old.fence), (new.job_id, new.fence)])
    return (answers, (await _only(w)).locked_at), ([SUPERSEDED, ACKNOWLEDGED], START + HOUR)


@example("heartbeat", "nothing held: []")
async def heartbeat_empty(w: World) -> Pair:
    return await w.queue.heartbeat([]), []


@example("heartbeat", "a finished job is SUPERSEDED")
async def heartbeat_finished(w: World) -> Pair:
    claimed = await _claimed(w)
    await w.queue.complete(claimed.job_id, claimed.fence)
    return await w.queue.heartbeat([(claimed.job_id, claimed.fence)]), [SUPERSEDED]


@example("enqueue", "JobQueue.enqueue(job) -> id")
async def enqueue_one(w: World) -> Pair:
    id = await w.queue.enqueue(job())
    return id, (await _only(w)).id


@example("enqueue", "honours every field that enqueue_parallel honours")
async def enqueue_fields(w: World) -> Pair:
    await w.queue.enqueue(job(priority=-1, scheduled_for=FAR_AHEAD, group_key="g", payload={"n": 2**70}))
    j = await _only(w)
    return (j.priority, j.next_poll_at, j.group_key, j.payload), (-1, FAR_AHEAD, "g", {"n": 2**70})


@example("enqueue", "idempotent on (run, stage)")
async def enqueue_again(w: World) -> Pair:
    await w.queue.enqueue(job())
    second = await w.queue.enqueue(job())
    return (await _only(w)).id, second
