"""The rules that complete, suspend, fail and defer share: one clause per rule and acknowledgement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from conformance.clause import MUST, SHOULD, Level, Need
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import EVERY_LEASE, HOUR, MS, claim_again, enqueue_one, job_of, running_job
from workflow_adapters.errors import NotFoundError
from workflow_adapters.ports.job_queue import JobQueue, SupportsDefer
from workflow_adapters.records.job_queue import JobAckFence
from workflow_adapters.records.status import JobAckOutcome, Status

_Call: TypeAlias = Callable[[Context[JobQueue], str, JobAckFence | None], Awaitable[JobAckOutcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ack:
    name: str
    tens: int
    """First digit of the numbers of its clauses."""
    call: _Call
    becomes: Status
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    ones: int
    level: Level
    text: str
    why: str
    hint: str
    trial: Callable[[Context[JobQueue], _Ack], Awaitable[None]]


async def _complete(ctx: Context[JobQueue], job_id: str, fence: JobAckFence | None) -> JobAckOutcome:
    return await ctx.adapter.complete(job_id, fence)


async def _suspend(ctx: Context[JobQueue], job_id: str, fence: JobAckFence | None) -> JobAckOutcome:
    return await ctx.adapter.suspend(job_id, ctx.now() + HOUR, fence)


async def _fail(ctx: Context[JobQueue], job_id: str, fence: JobAckFence | None) -> JobAckOutcome:
    return await ctx.adapter.fail(job_id, "broken", fence=fence)


async def _defer(ctx: Context[JobQueue], job_id: str, fence: JobAckFence | None) -> JobAckOutcome:
    return await ctx.capability(SupportsDefer).defer(job_id, ctx.now() + HOUR, "busy", fence)


_ACKS: Final = (
    _Ack(name="complete", tens=1, call=_complete, becomes=Status.COMPLETED),
    _Ack(name="suspend", tens=2, call=_suspend, becomes=Status.SUSPENDED),
    _Ack(name="fail", tens=3, call=_fail, becomes=Status.FAILED),
    _Ack(name="defer", tens=4, call=_defer, becomes=Status.PENDING, needs=(SupportsDefer,)),
)


async def _superseded(ctx: Context[JobQueue], ack: _Ack, job_id: str, run_id: str, fence: JobAckFence) -> None:
    """The acknowledgement is SUPERSEDED and changes nothing."""
    before = await job_of(ctx, run_id)
    ctx.expect(f"{ack.name} with this fence", await ack.call(ctx, job_id, fence)).equals(JobAckOutcome.SUPERSEDED)
    ctx.expect("the job afterwards", await job_of(ctx, run_id)).equals(before)


async def _holds(ctx: Context[JobQueue], ack: _Ack) -> None:
    claimed = await running_job(ctx)
    outcome = await ack.call(ctx, claimed.job_id, claimed.fence)
    ctx.expect(f"{ack.name} with the fence", outcome).equals(JobAckOutcome.ACKNOWLEDGED)
    ctx.expect("status", (await job_of(ctx, claimed.workflow_run_id)).status).equals(ack.becomes)


async def _after_a_reclaim(ctx: Context[JobQueue], ack: _Ack) -> None:
    lost = await running_job(ctx)
    await claim_again(ctx)
    await _superseded(ctx, ack, lost.job_id, lost.workflow_run_id, lost.fence)


async def _after_a_release(ctx: Context[JobQueue], ack: _Ack) -> None:
    lost = await running_job(ctx)
    await ctx.adapter.release_stale_jobs(EVERY_LEASE)
    await _superseded(ctx, ack, lost.job_id, lost.workflow_run_id, lost.fence)


async def _other_started_at(ctx: Context[JobQueue], ack: _Ack) -> None:
    claimed = await running_job(ctx)
    fence = JobAckFence(started_at=claimed.started_at - MS, attempt=claimed.attempt)
    await _superseded(ctx, ack, claimed.job_id, claimed.workflow_run_id, fence)


async def _other_attempt(ctx: Context[JobQueue], ack: _Ack) -> None:
    claimed = await running_job(ctx)
    fence = JobAckFence(started_at=claimed.started_at, attempt=claimed.attempt + 1)
    await _superseded(ctx, ack, claimed.job_id, claimed.workflow_run_id, fence)


async def _after_deletion(ctx: Context[JobQueue], ack: _Ack) -> None:
    claimed = await running_job(ctx)
    await ctx.adapter.delete_by_run_and_stages(claimed.workflow_run_id, [claimed.stage_id])
    outcome = await ack.call(ctx, claimed.job_id, claimed.fence)
    ctx.expect(f"{ack.name} of a deleted job", outcome).equals(JobAckOutcome.SUPERSEDED)
    ctx.expect("jobs of the run", await ctx.adapter.get_jobs_by_workflow_run(claimed.workflow_run_id)).is_empty()


async def _once_more(ctx: Context[JobQueue], ack: _Ack) -> None:
    claimed = await running_job(ctx)
    await ack.call(ctx, claimed.job_id, claimed.fence)
    await _superseded(ctx, ack, claimed.job_id, claimed.workflow_run_id, claimed.fence)


async def _without_a_fence(ctx: Context[JobQueue], ack: _Ack) -> None:
    run_id = await enqueue_one(ctx)
    outcome = await ack.call(ctx, (await job_of(ctx, run_id)).id, None)
    ctx.expect(f"{ack.name} without a fence", outcome).equals(JobAckOutcome.ACKNOWLEDGED)
    ctx.expect("status", (await job_of(ctx, run_id)).status).equals(ack.becomes)


async def _unknown(ctx: Context[JobQueue], ack: _Ack) -> None:
    job_id = ctx.new_id("no-job")
    with ctx.raises(NotFoundError, f"{ack.name} of an unknown job without a fence", id=job_id):
        await ack.call(ctx, job_id, None)


_IN_THE_WHERE: Final = "The UPDATE's WHERE holds id, status = 'RUNNING', started_at and attempt, all four."

_RULES: Final = (
    _Rule(
        ones=0,
        level=MUST,
        text="{} with the fence of a claim that still holds is ACKNOWLEDGED and takes effect.",
        why="A worker that still holds its job could not say how it ended.",
        hint="Compare started_at as it was handed out: to the millisecond, in UTC.",
        trial=_holds,
    ),
    _Rule(
        ones=1,
        level=MUST,
        text="{} with the fence of a claim that another has followed changes nothing and returns SUPERSEDED.",
        why="A worker that stalled past its lease would end the attempt of the worker that took over.",
        hint=_IN_THE_WHERE,
        trial=_after_a_reclaim,
    ),
    _Rule(
        ones=2,
        level=MUST,
        text="{} with the fence of a claim that was taken away changes nothing and returns SUPERSEDED.",
        why="The job is waiting for its next worker; a late answer would take it out of the queue.",
        hint="A released row keeps started_at and attempt: only the status tells.",
        trial=_after_a_release,
    ),
    _Rule(
        ones=3,
        level=MUST,
        text="{} with another started_at than the claim's is SUPERSEDED, whatever the attempt.",
        why="After a defer the next claim has the same attempt; started_at alone tells the two apart.",
        hint=_IN_THE_WHERE,
        trial=_other_started_at,
    ),
    _Rule(
        ones=4,
        level=MUST,
        text="{} with another attempt than the claim's is SUPERSEDED, whatever started_at.",
        why="Hosts of an older contract write equal instants in one millisecond; the attempt tells the two apart.",
        hint=_IN_THE_WHERE,
        trial=_other_attempt,
    ),
    _Rule(
        ones=5,
        level=MUST,
        text="{} with the fence of a job that has been deleted returns SUPERSEDED.",
        why="A rerun deletes jobs under their workers; an error there looks like a fault of the queue.",
        hint="No row updated means SUPERSEDED, for whatever reason.",
        trial=_after_deletion,
    ),
    _Rule(
        ones=6,
        level=MUST,
        text="{} a second time with the same fence changes nothing and returns SUPERSEDED.",
        why="A retry after a lost reply would overwrite what has happened to the job since.",
        hint="The job is not RUNNING any more.",
        trial=_once_more,
    ),
    _Rule(
        ones=7,
        level=MUST,
        text="{} without a fence takes effect whatever the job's status, and returns ACKNOWLEDGED.",
        why="An operator who repairs a queue by hand has no fence.",
        hint="No condition but the id.",
        trial=_without_a_fence,
    ),
    _Rule(
        ones=8,
        level=SHOULD,
        text="{} of an unknown job without a fence raises NotFoundError with the job's id.",
        why="A mistyped id would look like success.",
        hint="No row updated and no fence given: there is no such job.",
        trial=_unknown,
    ),
)


def _register(rule: _Rule, ack: _Ack) -> None:
    async def trial(ctx: Context[JobQueue]) -> None:
        await rule.trial(ctx, ack)

    clause(
        f"JQ-ACK-{ack.tens}{rule.ones}",
        rule.level,
        text=rule.text.format(ack.name),
        why=rule.why,
        hints=[rule.hint],
        needs=ack.needs,
        after=["JQ-DEQ-01"] if rule.ones == 0 else [f"JQ-ACK-{ack.tens}0"],
    )(trial)


for _ack in _ACKS:
    for _rule in _RULES:
        _register(_rule, _ack)
