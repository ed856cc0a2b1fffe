"""Several workers at once, on adapters of their own."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Final

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import drain, drain_patiently, enqueue_stages, running_job, statuses
from workflow_adapters.errors import BackendBusyError
from workflow_adapters.ports.job_queue import JobQueue, SupportsDequeueMany
from workflow_adapters.records.job_queue import DequeueResult
from workflow_adapters.records.status import JobAckOutcome, Status

_TIME: Final = timedelta(seconds=15)
_WORKERS: Final = 3


@clause(
    "JQ-RACE-01",
    MUST,
    text="However many workers claim at once, each job is handed out exactly once and none is left.",
    why="A job that runs twice charges twice; a job that nobody gets is lost.",
    hints=[
        "FOR UPDATE SKIP LOCKED inside the claiming UPDATE, or a compare-and-set whose row count is checked.",
        "A read followed by an update of the row that was read is the classic mistake.",
    ],
    after=["JQ-DEQ-11"],
    time_limit=_TIME,
)
async def exactly_once(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    ids = await enqueue_stages(ctx, run_id, 60)
    workers = await ctx.instances(_WORKERS) * 3
    claims = [
        claimed
        for taken in await ctx.together(*(partial(drain_patiently, worker) for worker in workers))
        for claimed in taken
    ]
    twice = [count for count in Counter(claimed.job_id for claimed in claims).values() if count > 1]
    ctx.expect("jobs handed out more than once", len(twice)).equals(0)
    missing = set(ids) - {claimed.job_id for claimed in claims}
    ctx.expect("jobs that nobody was handed", missing).is_empty()
    ctx.expect("statuses", set((await statuses(ctx, run_id)).values())).equals({Status.RUNNING})


@clause(
    "JQ-RACE-02",
    MUST,
    text="None is never the answer to a lost race: as many claims as there are jobs all get one.",
    why="A worker that is told the queue is empty goes to sleep beside work.",
    hints=["Try the next candidate inside the call; raise BackendBusyError when that was in vain too often."],
    after=["JQ-RACE-01"],
    time_limit=_TIME,
)
async def none_is_not_a_lost_race(ctx: Context[JobQueue]) -> None:
    workers = await ctx.instances(_WORKERS) * 4
    for _ in range(4):
        await enqueue_stages(ctx, await ctx.new_run(), len(workers))
        claims = await ctx.settled(*(worker.dequeue for worker in workers))
        ctx.expect("claims that answered None", sum(claimed is None for claimed in claims)).equals(0)
        errors = [claimed for claimed in claims if isinstance(claimed, Exception)]
        others = [error for error in errors if not isinstance(error, BackendBusyError)]
        ctx.expect("errors other than BackendBusyError", others).is_empty()
        ctx.expect("jobs left by those that were busy", await drain(ctx.adapter)).has_length(len(errors))


@clause(
    "JQ-RACE-03",
    MUST,
    text="Of several acknowledgements of one claim at once, exactly one is ACKNOWLEDGED.",
    why="Two that believe they ended the job both go on with what follows from it.",
    hints=["The condition is in the UPDATE; the outcome is its row count."],
    after=["JQ-ACK-16"],
    time_limit=_TIME,
)
async def one_acknowledgement(ctx: Context[JobQueue]) -> None:
    workers = await ctx.instances(_WORKERS) * 3
    for _ in range(5):
        claimed = await running_job(ctx)
        outcomes = await ctx.together(*(partial(worker.complete, claimed.job_id, claimed.fence) for worker in workers))
        ctx.expect("ACKNOWLEDGED outcomes", outcomes.count(JobAckOutcome.ACKNOWLEDGED)).equals(1)


@clause(
    "JQ-RACE-07",
    MUST,
    text="Two calls that enqueue the same pairs at once, in any order, leave one job per pair and never deadlock.",
    why="Two hosts that react to one event meet here; a deadlock costs one of them its transaction.",
    hints=["Lock rows in one order: sort the pairs bytewise before writing."],
    after=["JQ-ENQ-12"],
    time_limit=_TIME,
)
async def same_pairs_in_opposite_order(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    run_id = await ctx.new_run()
    # So many that each call is still at work when the other begins.
    names = [f"stage-{number:03}" for number in range(400)]
    for _ in range(4):
        forwards = [job(run_id, name) for name in names]
        backwards = forwards[::-1]
        first, second = await ctx.together(
            partial(ctx.adapter.enqueue_parallel, forwards), partial(other.enqueue_parallel, backwards)
        )
        listed = await ctx.adapter.get_jobs_by_workflow_run(run_id)
        ctx.expect("stages of the jobs", sorted(record.stage_id for record in listed)).equals(names)
        stored = {record.stage_id: record.id for record in listed}
        returned = [dict(zip(names, first, strict=True)), dict(zip(names[::-1], second, strict=True))]
        strangers = [name for name in names if stored[name] not in {ids[name] for ids in returned}]
        ctx.expect("stages whose job has an id that neither call returned", strangers).is_empty()


@clause(
    "JQ-RACE-08",
    MUST,
    text="enqueue_parallel is all or nothing: another worker sees none of its jobs or all of them.",
    why="A call that fails half-way would start half of a fan-out, and its retry the rest.",
    hints=["One statement, or one transaction around the chunks."],
    after=["JQ-ENQ-01"],
    time_limit=_TIME,
)
async def all_or_nothing(ctx: Context[JobQueue]) -> None:
    other = await ctx.second()
    run_id = await ctx.new_run()
    seen: set[int] = set()

    async def enqueue() -> None:
        await enqueue_stages(ctx, run_id, 200)

    async def look() -> None:
        for _ in range(30):
            seen.add(len(await other.get_jobs_by_workflow_run(run_id)))

    await ctx.together(enqueue, look)
    seen.add(len(await other.get_jobs_by_workflow_run(run_id)))
    ctx.expect("numbers of jobs that were seen", seen - {0}).equals({200})


@clause(
    "JQ-RACE-09",
    MUST,
    text="Batches claimed at once have no job in common and leave none behind.",
    why="A batch claim that selects first and updates later hands whole batches out twice.",
    hints=["Lock the candidates in the claiming statement; return the rows it has changed."],
    needs=[SupportsDequeueMany],
    after=["JQ-MANY-01", "JQ-RACE-01"],
    time_limit=_TIME,
)
async def batches(ctx: Context[JobQueue]) -> None:
    ids = await enqueue_stages(ctx, await ctx.new_run(), 60)
    workers = await ctx.instances(_WORKERS) * 2

    async def drain_in_batches(worker: JobQueue) -> list[DequeueResult]:
        claims: list[DequeueResult] = []
        while batch := await ctx.capability(SupportsDequeueMany, worker).dequeue_many(7):
            claims += batch
        return claims

    taken = await ctx.together(*(partial(drain_in_batches, worker) for worker in workers))
    claimed = [claim.job_id for claims in taken for claim in claims]
    ctx.expect("jobs claimed", len(claimed)).equals(60)
    ctx.expect("jobs that nobody was handed", set(ids) - set(claimed)).is_empty()
