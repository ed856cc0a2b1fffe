"""Trying a clause in the caller's own event loop, on adapters that the caller has opened."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.backend import Env, Fixture, Spec, fixture_of
from conformance.clause import DEFAULT_PARAMETERS, Clause, Parameters
from conformance.context import Context
from conformance.judge import attempt
from conformance.message import failure_text
from conformance.outcome import ClauseSkippedError, Outcome, Result
from conformance.registry import load
from conformance.report import text_of
from workflow_adapters.clock import ManualClock


class _GivenStand:
    def __init__(self, spec: Spec, env: Env, fixtures: Sequence[Fixture[Any]]) -> None:
        self.spec = spec
        self.env = env
        self._fixtures = fixtures

    async def instance(self, number: int) -> Fixture[Any]:
        if number >= len(self._fixtures):
            raise ClauseSkippedError(Outcome.NOT_TESTED, f"needs {number + 1} adapters; {len(self._fixtures)} given")
        return self._fixtures[number]


async def acheck(
    clause: str | Clause,
    adapter: object,
    *others: object,
    clock: ManualClock | None = None,
    parameters: Parameters = DEFAULT_PARAMETERS,
    capabilities: Sequence[type] | None = None,
) -> Result:
    """Try one clause here and now; AssertionError with the whole account when it is not met.

    `adapter` and `others` are adapters on one store, or `Fixture`s that hold them; the store should be empty. Without
    the `clock` that they stamp with, time can not be set, as with ``clock="database"``. `capabilities` defaults to what
    the clause needs. Unlike a run, this does not survive an adapter that blocks the loop or ignores its cancellation.
    """
    tried = load().get(clause) if isinstance(clause, str) else clause
    declared = parameters if clock is not None else replace(parameters, clock="database")
    spec = Spec(
        port=tried.port,
        factory=_no_factory,
        name=type(adapter).__name__,
        capabilities=tried.capabilities if capabilities is None else capabilities,
        parameters=declared,
    )
    lack = spec.lacks(tried)
    if lack is not None:
        return Result(clause_id=tried.id, outcome=Outcome.NOT_APPLICABLE, reason=lack)
    with tempfile.TemporaryDirectory() as directory:
        env = _env(Path(directory), clock or ManualClock())
        fixtures = [fixture_of(each) for each in (adapter, *others)]
        ctx: Context[Any] = Context(tried, _GivenStand(spec, env, fixtures), fixtures[0])
        result = await attempt(ctx, tried.time_limit)
    if result.outcome in {Outcome.FAIL, Outcome.WARN, Outcome.HARNESS_ERROR}:
        raise AssertionError("\n" + failure_text(text_of(tried), result, f"conformance.acheck({tried.id!r}, …)"))
    return result


def _env(directory: Path, clock: ManualClock) -> Env:
    return Env(namespace="given", instance="A", tmp_path=directory, dsn=None, seed=0, clock=clock)


def _no_factory(_: Env) -> Any:
    raise NotImplementedError("the adapters were given")
