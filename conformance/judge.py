"""One trial of one clause: within its time limit, whatever the adapter does, and then a verdict in words."""

from __future__ import annotations

import asyncio
import time
import traceback
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio

from conformance.clause import Clause, Level
from conformance.concurrency import is_asked_for
from conformance.context import Context
from conformance.instance import FixtureError
from conformance.outcome import ClauseFailedError, ClauseSkippedError, Failure, HarnessError, Outcome, Result


async def attempt(ctx: Context[Any], limit: timedelta) -> Result:
    """Try the clause of `ctx` and judge it. Never raises, unless the caller itself is cancelled."""
    clause = ctx.clause
    began = time.monotonic()
    error: BaseException | None = None
    with anyio.CancelScope(deadline=anyio.current_time() + limit.total_seconds()) as scope:
        try:
            await clause.function(ctx)
        except BaseException as raised:
            if scope.cancel_called and is_asked_for(raised):
                raise
            error = raised
    result = too_late(ctx, limit) if scope.cancel_called else _judge(ctx, error)
    return replace(result, seconds=time.monotonic() - began, checks=ctx.checks)


def too_late(ctx: Context[Any], limit: timedelta, how: str = "") -> Result:
    """The verdict on a clause that did not end within its time limit; `how` says what the adapter did instead."""
    if ctx.failure is not None:
        return not_met(ctx.clause, ctx.failure)
    waiting = list(dict.fromkeys(ctx.history.unanswered()))
    what = f"{waiting[0]} has" if len(waiting) == 1 else f"{', '.join(waiting)} have"
    subject = f"{what} not come back" if waiting else "The clause has not ended"
    seconds = f"{limit.total_seconds():g} s"
    return not_met(
        ctx.clause,
        Failure(
            expected=f"an answer within {seconds}",
            observed=f"none{f'; it {how}' if how else ''}",
            contradiction=f"{subject} within {seconds}{f', and {how}' if how else ''}.",
            history=ctx.history.events(),
        ),
    )


def not_met(clause: Clause, failure: Failure) -> Result:
    """A MUST that is not met is a FAIL, anything else a WARN."""
    outcome = Outcome.FAIL if clause.level is Level.MUST else Outcome.WARN
    return Result(clause_id=clause.id, outcome=outcome, failure=failure)


def _judge(ctx: Context[Any], error: BaseException | None) -> Result:
    if ctx.failure is not None:
        return not_met(ctx.clause, ctx.failure)
    match error:
        case None if ctx.checks == 0:
            outcome, reason = Outcome.HARNESS_ERROR, "the clause looked at nothing"
        case None:
            outcome, reason = Outcome.PASS, None
        case ClauseSkippedError():
            outcome, reason = error.outcome, error.reason
        case FixtureError():
            outcome, reason = Outcome.NOT_TESTED, str(error)
        case HarnessError():
            outcome, reason = Outcome.HARNESS_ERROR, str(error)
        case _:
            return not_met(ctx.clause, _surprise(ctx, error))
    return Result(clause_id=ctx.clause.id, outcome=outcome, reason=reason)


def _surprise(ctx: Context[Any], error: BaseException) -> Failure:
    if isinstance(error, ClauseFailedError):
        return error.failure
    told = ctx.wording.show(error)
    method = ctx.history.raiser_of(error)
    if isinstance(error, asyncio.CancelledError):
        said = f"{method or 'A call'} raised CancelledError, and nobody had cancelled it."
    elif method is not None:
        said = f"{method} raised {told}."
    else:
        said = f"With these answers the clause could not go on: {told}."
    return Failure(
        expected=f"{method} gives an answer" if method else "answers that the clause can use",
        observed=told,
        contradiction=said,
        history=ctx.history.events(),
        trace="".join(traceback.format_exception(error)),
    )
