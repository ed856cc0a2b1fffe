"""Instants, texts, keys, numbers and JSON in the job queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, timedelta
from typing import Any, Final

from conformance.builders import job
from conformance.clause import MUST
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.job_queue.scenes import claim, drain, enqueue_one, job_of, running_job, stage_ids
from conformance.suites.json_columns import JsonColumn, JsonFamily, Read
from conformance.suites.values import (
    BAD_KEYS,
    GOOD_KEYS,
    INSTANTS,
    NAIVE,
    STRINGS,
    UNSTORABLE_TEXTS,
    expect_instant,
)
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.json_values import JsonObject, JsonValue
from workflow_adapters.ports.job_queue import JobQueue, SupportsDefer
from workflow_adapters.records.status import Status


@clause(
    "JQ-TIME-01",
    MUST,
    text="suspend and defer refuse a naive instant, and the job is unchanged.",
    why="A naive instant is read in the zone of whatever machine it meets, hours off.",
    hints=["Check utcoffset() before the first statement; raise InvalidValueError for next_poll_at."],
    needs=[SupportsDefer],
    after=["JQ-DEQ-01"],
)
async def naive(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    before = await job_of(ctx, claimed.workflow_run_id)
    with ctx.raises(InvalidValueError, "suspend until a naive instant", field="next_poll_at"):
        await ctx.adapter.suspend(claimed.job_id, NAIVE, claimed.fence)
    with ctx.raises(InvalidValueError, "defer to a naive instant", field="next_poll_at"):
        await ctx.capability(SupportsDefer).defer(claimed.job_id, NAIVE, "busy", claimed.fence)
    ctx.expect("the job afterwards", await job_of(ctx, claimed.workflow_run_id)).equals(before)


@clause(
    "JQ-TIME-02",
    MUST,
    text="Instants of any zone and of the years 1 to 9999 come back as the same instants, in UTC.",
    why="Columns without a zone shift them by the session's; drivers with fewer years fail at the edges.",
    hints=["Convert to UTC before binding, and mark as UTC after reading."],
    after=["JQ-ENQ-04", "JQ-ACK-53"],
)
async def any_instant(ctx: Context[JobQueue]) -> None:
    for shown, at in INSTANTS.items():
        run_id = await enqueue_one(ctx, scheduled_for=at)
        expect_instant(ctx, f"next_poll_at of a job for {shown}", (await job_of(ctx, run_id)).next_poll_at, at)
        await ctx.adapter.cancel_by_run(run_id)
        claimed = await running_job(ctx)
        await ctx.adapter.suspend(claimed.job_id, at, claimed.fence)
        suspended = await job_of(ctx, claimed.workflow_run_id)
        expect_instant(ctx, f"next_poll_at of a job suspended until {shown}", suspended.next_poll_at, at)


@clause(
    "JQ-TIME-03",
    MUST,
    text="Instants are kept to the millisecond: what is finer is cut off, not rounded.",
    why="Rounding moves an instant into the future; two adapters that differ here disagree about what is due.",
    hints=["timestamp(3) rounds: truncate before binding."],
    after=["JQ-ACK-53"],
)
async def truncated(ctx: Context[JobQueue]) -> None:
    claimed = await running_job(ctx)
    at = INSTANTS["the last millisecond of a second"]
    await ctx.adapter.suspend(claimed.job_id, at + timedelta(microseconds=999), claimed.fence)
    expect_instant(ctx, "next_poll_at", (await job_of(ctx, claimed.workflow_run_id)).next_poll_at, at.astimezone(UTC))


@clause(
    "JQ-TEXT-01",
    MUST,
    text="An error text with U+0000 or a lone surrogate is recorded, each of these as U+FFFD.",
    why="Recording a failure must not itself fail: the job would stay RUNNING and be run again.",
    hints=["Replace the characters before binding; do not refuse them."],
    after=["JQ-FAIL-08", "JQ-FAIL-09"],
)
async def unstorable_text(ctx: Context[JobQueue]) -> None:
    for shown, (given, kept) in UNSTORABLE_TEXTS.items():
        claimed = await running_job(ctx)
        await ctx.adapter.fail(claimed.job_id, given, fence=claimed.fence)
        stored = await job_of(ctx, claimed.workflow_run_id)
        ctx.expect(f"status after an error with {shown}", stored.status).equals(Status.FAILED)
        ctx.expect(f"last_error with {shown}", stored.last_error).equals(kept)


@clause(
    "JQ-TEXT-02",
    MUST,
    text="A reason with U+0000 or a lone surrogate is recorded, each of these as U+FFFD.",
    why="A job that can not be declined is held until its lease ends, and counted as an attempt.",
    hints=["Replace the characters before binding; do not refuse them."],
    needs=[SupportsDefer],
    after=["JQ-DEFER-05"],
)
async def unstorable_reason(ctx: Context[JobQueue]) -> None:
    for shown, (given, kept) in UNSTORABLE_TEXTS.items():
        claimed = await running_job(ctx)
        later = ctx.now() + timedelta(days=1)
        await ctx.capability(SupportsDefer).defer(claimed.job_id, later, given, claimed.fence)
        stored = await job_of(ctx, claimed.workflow_run_id)
        ctx.expect(f"last_error with {shown}", stored.last_error).equals(kept)


@clause(
    "JQ-TEXT-03",
    MUST,
    text="An error text comes back character by character, a megabyte of it too, and an empty one.",
    why="The end of a long trace is where the cause is.",
    hints=["No length limit, no index on last_error."],
    after=["JQ-FAIL-09"],
)
async def any_text(ctx: Context[JobQueue]) -> None:
    for text in (*STRINGS.values(), "", "long " * 200_000):
        claimed = await running_job(ctx)
        await ctx.adapter.fail(claimed.job_id, text, fence=claimed.fence)
        ctx.expect("last_error", (await job_of(ctx, claimed.workflow_run_id)).last_error).equals(text)


@clause(
    "JQ-TEXT-04",
    MUST,
    text="Stages, workflows, versions and groups have any names up to 800 bytes, and come back as they are.",
    why="A name that is folded, trimmed or read as a pattern makes two things one.",
    hints=["Bind values; never build them into the statement."],
    after=["JQ-ENQ-03"],
)
async def any_name(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    await ctx.adapter.enqueue_parallel(
        [job(run_id, name, workflow_id=name, group_key=name, definition_version=name) for name in GOOD_KEYS]
    )
    stored = {record.stage_id: record for record in await ctx.adapter.get_jobs_by_workflow_run(run_id)}
    for name in GOOD_KEYS:
        ctx.expect("stages stored", sorted(stored)).contains(name)
        found = (stored[name].workflow_id, stored[name].group_key, stored[name].definition_version)
        ctx.expect("workflow, group and version", found).equals((name, name, name))
    ctx.expect("stages claimed", sorted(stage_ids(await drain(ctx.adapter)))).equals(sorted(GOOD_KEYS))


_BY_RUN: Final[dict[str, Callable[[JobQueue, str], Awaitable[Any]]]] = {
    "cancel_by_run": lambda queue, bad: queue.cancel_by_run(bad),
    "get_jobs_by_workflow_run": lambda queue, bad: queue.get_jobs_by_workflow_run(bad),
    "delete_by_run_and_stages": lambda queue, bad: queue.delete_by_run_and_stages(bad, ["stage"]),
}
_BY_JOB: Final[dict[str, Callable[[JobQueue, str], Awaitable[Any]]]] = {
    "complete": lambda queue, bad: queue.complete(bad),
    "fail": lambda queue, bad: queue.fail(bad, "broken"),
    "touch_job": lambda queue, bad: queue.touch_job(bad),
}


@clause(
    "JQ-TEXT-05",
    MUST,
    text="Ids that are empty, hold U+0000 or a lone surrogate, or exceed 800 bytes are refused by every method.",
    why="Where one adapter refuses and another finds nothing, a host works on one database and fails on the next.",
    hints=["Raise InvalidValueError naming the argument, before the first statement."],
)
async def bad_ids(ctx: Context[JobQueue]) -> None:
    for shown, bad in BAD_KEYS.items():
        for field, calls in (("run_id", _BY_RUN), ("job_id", _BY_JOB)):
            for method, call in calls.items():
                with ctx.raises(InvalidValueError, f"{method} with {shown}", field=field):
                    await call(ctx.adapter, bad)


@clause(
    "JQ-INT-01",
    MUST,
    text="Priorities have the whole range of 32 bits, and are ordered over all of it.",
    why="A narrower column fails at the edges; an order by difference or text turns them around.",
    hints=["A 32-bit integer column, compared as a number."],
    after=["JQ-ORDER-01"],
)
async def priorities(ctx: Context[JobQueue]) -> None:
    run_id = await ctx.new_run()
    rows = {"lowest": -(2**31), "nine": 9, "ten": 10, "minus": -10, "highest": 2**31 - 1}
    await ctx.adapter.enqueue_parallel([job(run_id, name, priority=value) for name, value in rows.items()])
    claims = await drain(ctx.adapter)
    ctx.expect("order of the claims", stage_ids(claims)).equals(["highest", "ten", "nine", "minus", "lowest"])
    ctx.expect("priorities", {c.stage_id: c.priority for c in claims}).equals(rows)


async def _store_payload(ctx: Context[JobQueue], value: JsonObject) -> Read:
    run_id = await enqueue_one(ctx, payload=value)

    async def read() -> JsonValue:
        return (await job_of(ctx, run_id)).payload

    return read


JsonFamily(
    prefix="JQ-JSON",
    columns=[JsonColumn(name="payload", store=_store_payload, objects_only=True, nullable=False)],
    after=["JQ-ENQ-01"],
).register()


@clause(
    "JQ-JSON-10",
    MUST,
    text="The payload of a claim is the payload that was enqueued, down to the last digit.",
    why="Claims and listings read the column in different statements; the one that counts must not be the worse.",
    hints=["One function reads payloads."],
    after=["JQ-JSON-02", "JQ-JSON-03"],
)
async def payload_of_a_claim(ctx: Context[JobQueue]) -> None:
    payload: JsonObject = {"float": 1e23, "whole": 1.0, "int": 2**70, "text": "\U0001f600", "none": None}
    await enqueue_one(ctx, payload=payload)
    ctx.expect("payload of the claim", (await claim(ctx)).payload).equals(payload)
