"""Isolation of clauses, factories, fixtures, and what is left on disk."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from conformance import servers
from conformance.backend import Env, Fixture
from conformance.clause import Options
from conformance.context import Context
from conformance.outcome import Outcome
from conformance.throwaway.errors import NotAvailableError, Refusal
from tests.conformance import misbehaving
from tests.conformance.misbehaving import factory_of
from tests.conformance.pocket_ledger import PocketLedger, pocket, pocket_with_reset
from tests.conformance.trials import IDS, failure_of, judged, outcomes, registry_with, session, spec_of
from workflow_adapters.clock import ManualClock
from workflow_adapters.inputs.step_ledger import NewStep
from workflow_adapters.ports.step_ledger import StepLedger
from workflow_adapters.records.step_ledger import StepClaim


def test_a_store_that_shows_rows_of_an_earlier_clause_is_refused() -> None:
    misbehaving.SHARED.clear()
    with session(spec_of(factory_of(misbehaving.Shared))) as opened:
        assert opened.check("SL-CLAIM-01").outcome is Outcome.PASS
        assert opened.check("SL-LIST-01").outcome is Outcome.NOT_TESTED
        assert opened.refused is not None
        assert "give the fixture a `reset`" in opened.refused


def test_a_factory_that_raises_makes_everything_not_tested() -> None:
    @asynccontextmanager
    async def broken(_: Env) -> AsyncGenerator[PocketLedger]:
        raise OSError("no such host")
        yield

    results = judged(spec_of(broken))
    assert set(outcomes(results).values()) == {"NOT_TESTED"}
    assert {result.reason for result in results.values()} == {"the factory raised OSError: no such host"}


def test_a_factory_whose_end_raises_fails_the_clause() -> None:
    @asynccontextmanager
    async def brittle(env: Env) -> AsyncGenerator[PocketLedger]:
        yield PocketLedger(env)
        raise OSError("connection reset")

    said = "The adapter did not last, or could not be left: leaving the factory raised OSError: connection reset."
    assert failure_of(judged(spec_of(brittle))["SL-LIST-01"]).contradiction == said


def test_a_factory_whose_end_raises_when_all_is_done_is_told_too() -> None:
    @asynccontextmanager
    async def brittle(env: Env) -> AsyncGenerator[Fixture[PocketLedger]]:
        async with pocket_with_reset(env) as fixture:
            yield fixture
        raise OSError("connection reset")

    with session(spec_of(brittle)) as opened:
        assert opened.check("SL-LIST-01").outcome is Outcome.PASS
        assert opened.close() == "leaving the factory raised OSError: connection reset"


def test_an_adapter_whose_context_ends_by_itself_fails() -> None:
    @asynccontextmanager
    async def dying(env: Env) -> AsyncGenerator[PocketLedger]:
        async with anyio.create_task_group() as tasks:

            class Dying(PocketLedger):
                async def claim(self, step: NewStep) -> StepClaim:
                    tasks.cancel_scope.cancel()
                    return await super().claim(step)

            yield Dying(env)

    result = judged(spec_of(dying))["SL-CLAIM-01"]
    assert result.outcome is Outcome.FAIL


def test_an_adapter_that_opens_too_late_for_its_clause_is_closed_too() -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def slow(env: Env) -> AsyncGenerator[Fixture[PocketLedger]]:
        opened.append(env.instance)
        with socket.socket():  # what a database's adapter would hold
            if env.instance == "B":
                await anyio.sleep(3)  # the clause has two seconds
            async with pocket_with_reset(env) as fixture:
                yield fixture

    with session(spec_of(slow)) as tried:
        assert tried.check("SL-CLAIM-02").outcome is Outcome.FAIL
        assert tried.check("SL-LIST-01").outcome is Outcome.PASS
        assert tried.close() == ""
    assert opened.count("B") == 1


def test_reset_is_called_between_clauses_on_one_and_the_same_adapter() -> None:
    entered: list[Env] = []

    @asynccontextmanager
    async def counted(env: Env) -> AsyncGenerator[Fixture[PocketLedger]]:
        entered.append(env)
        async with pocket_with_reset(env) as fixture:
            yield fixture

    results = judged(spec_of(counted))
    assert set(outcomes(results).values()) == {"PASS"}
    assert [env.instance for env in entered] == ["A", "B"]
    assert len({env.namespace for env in entered}) == 1


def test_without_reset_every_clause_has_a_namespace_and_directory_of_its_own() -> None:
    entered: list[Env] = []

    @asynccontextmanager
    async def counted(env: Env) -> AsyncGenerator[PocketLedger]:
        assert env.tmp_path.is_dir()
        entered.append(env)
        yield PocketLedger(env)

    judged(spec_of(counted))
    assert len({env.namespace for env in entered}) == len(IDS)
    assert len({env.tmp_path for env in entered}) == len(IDS)


def test_the_adapters_own_clear_is_not_a_ledgers_reset() -> None:
    cleared: list[str] = []

    class Clearing(PocketLedger):
        async def clear(self, stage_record_id: str = "") -> None:
            cleared.append(stage_record_id)

    judged(spec_of(factory_of(Clearing)))
    assert cleared == []


def test_options_reach_the_factory() -> None:
    seen: list[str | None] = []

    @asynccontextmanager
    async def looking(env: Env) -> AsyncGenerator[PocketLedger]:
        seen.append(env.worker_id)
        yield PocketLedger(env)

    async def passes(ctx: Context[StepLedger]) -> None:
        ctx.expect("list", await ctx.adapter.list("stage")).equals([])

    judged(spec_of(looking), registry_with(passes, Options(worker_id="configured")))
    assert seen == ["configured"]


def test_time_is_shifted_where_it_can_be_and_else_the_clause_does_not_apply() -> None:
    shifted: list[float] = []

    def on_a_clock_of_today(env: Env) -> PocketLedger:
        ledger = PocketLedger(env)
        ledger.clock = ManualClock(datetime.now(UTC))
        return ledger

    @asynccontextmanager
    async def fixed(env: Env) -> AsyncGenerator[PocketLedger]:
        yield on_a_clock_of_today(env)

    @asynccontextmanager
    async def shifting(env: Env) -> AsyncGenerator[Fixture[PocketLedger]]:
        ledger = on_a_clock_of_today(env)

        async def shift_clock(delta: Any) -> None:
            shifted.append(delta.total_seconds())
            ledger.clock.advance(delta)

        yield Fixture(adapter=ledger, shift_clock=shift_clock)

    database = replace(spec_of().parameters, clock="database")
    assert judged(spec_of(shifting, parameters=database))["SL-PATCH-01"].outcome is Outcome.PASS
    assert shifted == [1.0]
    result = judged(spec_of(fixed, parameters=database))["SL-PATCH-01"]
    assert result.outcome is Outcome.NOT_APPLICABLE
    assert result.reason is not None
    assert "no shift_clock" in result.reason


def test_the_fixtures_parents_are_used_and_what_they_raise_is_not_the_adapters_fault() -> None:
    @asynccontextmanager
    async def orphaning(env: Env) -> AsyncGenerator[Fixture[PocketLedger]]:
        async def new_stage() -> str:
            raise OSError("no stages here")

        yield Fixture(adapter=PocketLedger(env), new_stage=new_stage)

    result = judged(spec_of(orphaning))["SL-CLAIM-01"]
    assert result.outcome is Outcome.NOT_TESTED
    assert result.reason == "new_stage raised OSError: no stages here"


def test_without_a_server_everything_is_not_tested_for_every_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise NotAvailableError([Refusal("testcontainers", "no engine answers"), Refusal("local", "not installed")])

    monkeypatch.setattr("conformance.throwaway.blocking_postgres", refuse)
    monkeypatch.setattr(servers, "_shared", servers.Shared())
    results = judged(spec_of(needs_postgres=True))
    assert set(outcomes(results).values()) == {"NOT_TESTED"}
    for reason in ("testcontainers: no engine answers", "local: not installed"):
        assert reason in (results["SL-LIST-01"].reason or "")


def test_a_generator_without_its_decorator_is_a_factory_too() -> None:
    async def plain(env: Env) -> AsyncGenerator[PocketLedger]:
        yield PocketLedger(env)

    assert set(outcomes(judged(spec_of(plain))).values()) == {"PASS"}


def test_a_factory_that_is_no_function_has_a_name_too() -> None:
    class Factory:
        def __call__(self, env: Env) -> Any:
            return pocket(env)

    spec = spec_of(Factory())
    assert spec.name == "Factory"
    assert judged(spec)["SL-LIST-01"].outcome is Outcome.PASS
