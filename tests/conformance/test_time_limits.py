"""How long clauses may take: an adapter that is far from its database keeps the contract, too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from conformance import bench
from conformance.backend import Spec
from conformance.context import Context
from conformance.outcome import Result
from conformance.runner import run_sync
from tests.conformance.backends import memory

A_CALL = timedelta(milliseconds=50)


def calls_one_after_another(ctx: Context[Any]) -> int:
    """How many a clause made; those that were under way at the same time count as one, `log_call` waits for nothing."""
    count, free_at = 0, 0.0
    for began, ended in sorted(spans_of(ctx), key=lambda span: span[1]):
        if began >= free_at:
            count, free_at = count + 1, ended
    return count


def spans_of(ctx: Context[Any]) -> list[tuple[float, float]]:
    history = ctx.history
    return [
        (call.started, call.started if call.ended is None else call.ended)
        for call in history._calls
        if call.method != "log_call"
    ]


@pytest.mark.parametrize("spec", memory, ids=lambda spec: spec.port.slug)
def test_every_call_may_take_fifty_milliseconds(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    too_short: dict[str, int] = {}
    attempt = bench.attempt

    async def counted(ctx: Context[Any], limit: timedelta) -> Result:
        result = await attempt(ctx, limit)
        calls = calls_one_after_another(ctx)
        if calls * A_CALL > ctx.clause.time_limit:
            too_short[ctx.clause.id] = calls
        return result

    monkeypatch.setattr(bench, "attempt", counted)
    assert run_sync(spec).exit_code == 0
    assert too_short == {}
