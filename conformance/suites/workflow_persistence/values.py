"""Instants, texts, keys and numbers in persistence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from conformance.builders import annotation, event, stage
from conformance.clause import MUST, TIME_LIMIT_OF_MANY_CALLS
from conformance.context import Context
from conformance.registry import clause
from conformance.suites.values import BAD_KEYS, GOOD_KEYS, INSTANTS, NAIVE, STRINGS, UNSTORABLE_TEXTS, expect_instant
from conformance.suites.workflow_persistence.scenes import new_run, new_stage, run_of, stage_of
from workflow_adapters.errors import InvalidValueError
from workflow_adapters.inputs.annotations import AnnotationActor
from workflow_adapters.inputs.logs import CreateLogInput
from workflow_adapters.inputs.runs import UpdateRunInput
from workflow_adapters.inputs.stages import UpdateStageInput
from workflow_adapters.ports.workflow_persistence import WorkflowPersistence
from workflow_adapters.records.status import LogLevel, Status

_WP: TypeAlias = WorkflowPersistence

_INSTANT_ARGUMENTS: Final[dict[str, tuple[str, Callable[[_WP, datetime], Awaitable[Any]]]]] = {
    "get_stuck_runs": ("stuck_since", lambda wp, at: wp.get_stuck_runs(at)),
    "claim_next_pending_run": ("now", lambda wp, at: wp.claim_next_pending_run(at)),
    "list_runs_for_purge": ("cutoff", lambda wp, at: wp.list_runs_for_purge(at, [Status.FAILED], 1)),
    "get_suspended_stages": ("before", lambda wp, at: wp.get_suspended_stages(at)),
    "acquire_idempotency_key": ("now", lambda wp, at: wp.acquire_idempotency_key("k", "t", at)),
}

_ID_ARGUMENTS: Final[dict[str, tuple[str, Callable[[_WP, str], Awaitable[Any]]]]] = {
    "get_run": ("id", lambda wp, bad: wp.get_run(bad)),
    "get_run_status": ("id", lambda wp, bad: wp.get_run_status(bad)),
    "update_run": ("id", lambda wp, bad: wp.update_run(bad, UpdateRunInput())),
    "delete_run": ("id", lambda wp, bad: wp.delete_run(bad)),
    "get_definition": ("workflow_id", lambda wp, bad: wp.get_definition(bad, "v1")),
    "get_stage": ("stage_id", lambda wp, bad: wp.get_stage("r", bad)),
    "update_stage": ("id", lambda wp, bad: wp.update_stage(bad, UpdateStageInput())),
    "get_stages_by_run": ("run_id", lambda wp, bad: wp.get_stages_by_run(bad)),
    "delete_stage": ("id", lambda wp, bad: wp.delete_stage(bad)),
    "list_annotations": ("run_id", lambda wp, bad: wp.list_annotations(bad)),
    "increment_outbox_retry_count": ("id", lambda wp, bad: wp.increment_outbox_retry_count(bad)),
    "move_outbox_event_to_dlq": ("id", lambda wp, bad: wp.move_outbox_event_to_dlq(bad)),
    "acquire_idempotency_key": ("key", lambda wp, bad: wp.acquire_idempotency_key(bad, "t")),
    "complete_idempotency_key": ("command_type", lambda wp, bad: wp.complete_idempotency_key("k", bad, 1)),
    "release_idempotency_key": ("key", lambda wp, bad: wp.release_idempotency_key(bad, "t")),
}


@clause(
    "WP-TIME-01",
    MUST,
    text="Every method that takes an instant refuses a naive one with an InvalidValueError that names the argument.",
    why="A naive instant is read in the zone of whatever machine it meets, hours off.",
    hints=["Check utcoffset() before the first statement."],
)
async def naive(ctx: Context[WorkflowPersistence]) -> None:
    stored = await new_run(ctx)
    for method, (field, call) in _INSTANT_ARGUMENTS.items():
        with ctx.raises(InvalidValueError, f"{method} with a naive instant", field=field):
            await call(ctx.adapter, NAIVE)
    ctx.expect("the run that could have been claimed", await run_of(ctx, stored.id)).equals(stored)


@clause(
    "WP-TIME-02",
    MUST,
    text="Instants of any zone and of the years 1 to 9999 come back as the same instants, in UTC.",
    why="Columns without a zone shift them by the session's; drivers with fewer years fail at the edges.",
    hints=["Convert to UTC before binding, and mark as UTC after reading."],
    after=["WP-UPDATE-01", "WP-STAGE-21", "WP-OUT-02"],
)
async def any_instant(ctx: Context[WorkflowPersistence]) -> None:
    run, one = await new_run(ctx), await new_stage(ctx)
    for shown, at in INSTANTS.items():
        await ctx.adapter.update_run(run.id, UpdateRunInput(started_at=at, completed_at=at))
        patch = UpdateStageInput(started_at=at, completed_at=at, next_poll_at=at, max_wait_until=at)
        await ctx.adapter.update_stage(one.id, patch)
        after = await run_of(ctx, run.id)
        expect_instant(ctx, f"started_at of a run for {shown}", after.started_at, at)
        expect_instant(ctx, f"completed_at of a run for {shown}", after.completed_at, at)
        stored = await stage_of(ctx, one)
        for name in ("started_at", "completed_at", "next_poll_at", "max_wait_until"):
            expect_instant(ctx, f"{name} of a stage for {shown}", getattr(stored, name), at)
        run_id = ctx.new_id("run")
        await ctx.adapter.append_outbox_events([event(run_id, occurred_at=at)])
        (sent,) = await ctx.adapter.claim_unpublished_outbox_events()
        expect_instant(ctx, f"occurred_at of an event for {shown}", sent.occurred_at, at)


@clause(
    "WP-TIME-03",
    MUST,
    text="A `now` that the caller gives is kept to the millisecond: what is finer is cut off, not rounded.",
    why="Rounding moves a stamp into the future, and two adapters write different ones for one call.",
    hints=["timestamp(3) rounds: truncate before binding."],
    after=["WP-CLAIM-02"],
)
async def truncated(ctx: Context[WorkflowPersistence]) -> None:
    await new_run(ctx)
    at = INSTANTS["the last millisecond of a second"]
    claimed = await ctx.adapter.claim_next_pending_run(at + timedelta(microseconds=999))
    found = ctx.expect("the claim", claimed).is_not_none()
    expect_instant(ctx, "started_at", found.started_at, at)


@clause(
    "WP-TEXT-01",
    MUST,
    text="Error and log texts with U+0000 or a lone surrogate are recorded, each of these as U+FFFD.",
    why="Recording a failure must not itself fail: the run would read as running though it broke.",
    hints=["The inputs have replaced the characters; do not refuse what they hold."],
    after=["WP-STAGE-21", "WP-LOG-01"],
)
async def unstorable_text(ctx: Context[WorkflowPersistence]) -> None:
    one = await new_stage(ctx)
    for shown, (given, kept) in UNSTORABLE_TEXTS.items():
        await ctx.adapter.update_stage(one.id, UpdateStageInput(status=Status.FAILED, error_message=given))
        ctx.expect(f"error_message with {shown}", (await stage_of(ctx, one)).error_message).equals(kept)
        await ctx.adapter.create_log(CreateLogInput(level=LogLevel.ERROR, message=given, workflow_stage_id=one.id))


@clause(
    "WP-TEXT-02",
    MUST,
    text="An error message comes back character by character, a megabyte of it too, and an empty one.",
    why="The end of a long trace is where the cause is.",
    hints=["No length limit; '' is not NULL."],
    after=["WP-STAGE-21"],
)
async def any_text(ctx: Context[WorkflowPersistence]) -> None:
    one = await new_stage(ctx)
    for text in (*STRINGS.values(), "", "long " * 200_000):
        await ctx.adapter.update_stage(one.id, UpdateStageInput(error_message=text))
        ctx.expect("error_message", (await stage_of(ctx, one)).error_message).equals(text)


@clause(
    "WP-TEXT-03",
    MUST,
    text="Ids, names, types, scopes and keys are any texts up to 800 bytes, and come back as they are.",
    why="A name that is folded, trimmed or read as a pattern makes two things one.",
    hints=["Bind values; never build them into the statement.", "No collation that folds case or accents."],
    after=["WP-RUN-02", "WP-STAGE-03", "WP-ANN-01", "WP-OUT-02", "WP-IDEM-03"],
    time_limit=TIME_LIMIT_OF_MANY_CALLS,
)
async def any_key(ctx: Context[WorkflowPersistence]) -> None:
    for name in GOOD_KEYS:
        run = await new_run(ctx, id=name, workflow_id=name, workflow_name=name, workflow_type=name)
        ctx.expect("the run", await run_of(ctx, name)).equals(run)
        ctx.expect("names of the run", (run.workflow_id, run.workflow_name, run.workflow_type)).equals((name,) * 3)
        one = await ctx.adapter.create_stage(stage(name, name, stage_name=name))
        ctx.expect("the stage", await ctx.adapter.get_stage(name, name)).equals(one)
        actor = AnnotationActor(kind=name, id=name, version=name)
        given = annotation(name, name, scope=name, scope_id=name, actor=actor, idempotency_key=name)
        await ctx.adapter.append_annotations([given])
        (noted,) = ctx.expect("annotations", await ctx.adapter.list_annotations(name)).has_length(1)
        found = {noted.key, noted.scope, noted.scope_id, noted.actor_kind, noted.actor_id, noted.idempotency_key}
        ctx.expect("names of the annotation", found).equals({name})
        await ctx.adapter.append_outbox_events([event(name, name, causation_id=name)])
        (sent,) = await ctx.adapter.claim_unpublished_outbox_events()
        ctx.expect("names of the event", {sent.workflow_run_id, sent.event_type, sent.causation_id}).equals({name})
        await ctx.adapter.acquire_idempotency_key(name, name)
        await ctx.adapter.complete_idempotency_key(name, name, name)


@clause(
    "WP-TEXT-04",
    MUST,
    text="Ids and keys that are empty, hold U+0000 or a lone surrogate, or exceed 800 bytes are refused everywhere.",
    why="Where one adapter refuses and another finds nothing, a host works on one database and fails on the next.",
    hints=["Raise InvalidValueError naming the argument, before the first statement."],
)
async def bad_keys(ctx: Context[WorkflowPersistence]) -> None:
    for shown, bad in BAD_KEYS.items():
        for method, (field, call) in _ID_ARGUMENTS.items():
            with ctx.raises(InvalidValueError, f"{method} with {shown}", field=field):
                await call(ctx.adapter, bad)


@clause(
    "WP-TEXT-05",
    MUST,
    text="A list of ids is refused whole when one of them is no possible id, and nothing is written.",
    why="Half of a list would be published, and the error would not say which half.",
    hints=["Check every item before the first statement; the path names the item."],
    after=["WP-FLUSH-10"],
)
async def bad_key_in_a_list(ctx: Context[WorkflowPersistence]) -> None:
    await ctx.adapter.append_outbox_events([event(ctx.new_id("run"))])
    before = await ctx.adapter.get_unpublished_outbox_events()
    for shown, bad in BAD_KEYS.items():
        with ctx.raises(InvalidValueError, f"marking with {shown} among the ids", field="ids", path="ids[1]"):
            await ctx.adapter.mark_outbox_events_published([before[0].id, bad])
    ctx.expect("unpublished events", await ctx.adapter.get_unpublished_outbox_events()).equals(before)
