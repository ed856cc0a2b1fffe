"""One adapter under trial: what blocks what, gaps, isolation, and adapters that do what none should."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from conformance import servers
from conformance.backend import Env, Fixture, Spec
from conformance.choice import Choice, Loop
from conformance.clause import MUST, Options, Port
from conformance.context import Context
from conformance.outcome import Failure, Outcome, Result
from conformance.registry import Registry, clause
from conformance.session import Session
from conformance.throwaway.errors import NotAvailableError, Refusal
from tests.conformance import misbehaving
from tests.conformance.misbehaving import factory_of
from tests.conformance.pocket_clauses import REGISTRY
from tests.conformance.pocket_ledger import PocketLedger, pocket, pocket_with_reset
from workflow_adapters.inputs.step_ledger import NewStep
from workflow_adapters.ports.step_ledger import StepLedger, SupportsClearExcept
from workflow_adapters.records.step_ledger import StepClaim

IDS = [each.id for each in REGISTRY.clauses()]


def spec_of(factory: Any = pocket, **options: Any) -> Spec:
    return Spec(**{"port": Port.STEP_LEDGER, "factory": factory, "capabilities": [SupportsClearExcept], **options})


@contextmanager
def session(spec: Spec, registry: Registry = REGISTRY, **choice: Any) -> Generator[Session]:
    opened = Session(spec, registry, Choice(**choice))
    try:
        yield opened
    finally:
        opened.close()


def judged(spec: Spec, registry: Registry = REGISTRY, **choice: Any) -> dict[str, Result]:
    with session(spec, registry, **choice) as opened:
        return {each.id: opened.check(each.id) for each in registry.clauses()}


def outcomes(results: Mapping[str, Result]) -> dict[str, str]:
    return {id: result.outcome.value for id, result in results.items()}


def failure_of(result: Result) -> Failure:
    assert result.failure is not None
    return result.failure


@pytest.mark.parametrize("factory", [pocket, pocket_with_reset])
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_good_adapter_passes_everything(factory: Any, loop: Loop) -> None:
    with session(spec_of(factory), loop=loop) as opened:
        results = {id: opened.check(id) for id in IDS}
        left = opened.close()
    assert outcomes(results) == dict.fromkeys(IDS, "PASS")
    assert all(result.checks > 0 for result in results.values())
    assert left == ""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (misbehaving.Hanging, "claim has not come back within 0.4 s."),
        (misbehaving.Swallowing, "claim has not come back within 0.4 s, and ignores its cancellation."),
        (misbehaving.Blocking, "claim has not come back within 0.4 s, and blocks the event loop."),
        (misbehaving.Cancelling, "claim raised CancelledError, and nobody had cancelled it."),
        (misbehaving.Interrupting, "claim raised KeyboardInterrupt."),
        (misbehaving.Raising, "claim raised KeyError('stage')."),
        (misbehaving.LeakingTasks, "The adapter is closed and has left behind: 2 tasks (sleep)."),
        (misbehaving.LeakingThreads, "The adapter is closed and has left behind: 2 threads (forgotten)."),
        (misbehaving.LeakingConnections, "The adapter is closed and has left behind: 2 connections."),
        (misbehaving.Nothing, "claim answers StepClaim; it returned None."),
        (misbehaving.Bare, "The adapter has no claim."),
        (misbehaving.Synchronous, "claim raised KeyError(('stage-record-1', 'step'))."),
        (misbehaving.Forgetful, "created by the second claim is True, but must be False."),
    ],
)
def test_an_adapter_that_misbehaves_is_called_by_its_name_and_stops_nothing(kind: type, said: str) -> None:
    results = judged(spec_of(factory_of(kind)), time_scale=0.2)
    assert failure_of(results["SL-CLAIM-01"]).contradiction == said
    assert outcomes(results)["SL-CLAIM-01"] == "FAIL"
    assert results["SL-CLAIM-02"].outcome is Outcome.NOT_TESTED
    assert results["SL-CLAIM-02"].reason == "builds on SL-CLAIM-01, which is FAIL"
    if kind not in (misbehaving.Nothing, misbehaving.Bare):
        assert results["SL-LIST-01"].outcome is Outcome.PASS


def test_an_adapter_that_spins_without_awaiting_is_left_behind() -> None:
    results = judged(spec_of(factory_of(misbehaving.Spinning)), time_scale=0.2)
    # The call's own record may have seen the exception that ends the abandoned thread, or not yet.
    assert "within 0.4 s, and blocks the event loop" in failure_of(results["SL-CLAIM-01"]).contradiction
    assert results["SL-LIST-01"].outcome is Outcome.PASS


def test_a_should_that_is_not_met_is_a_warning_and_blocks_nothing() -> None:
    results = judged(spec_of(factory_of(misbehaving.Unstamped)))
    assert results["SL-PATCH-01"].outcome is Outcome.WARN
    assert set(outcomes(results).values()) == {"PASS", "WARN"}


def test_what_is_not_declared_is_not_applicable_and_says_why() -> None:
    results = judged(spec_of(capabilities=[]))
    assert results["SL-KEEP-01"].outcome is Outcome.NOT_APPLICABLE
    assert results["SL-KEEP-01"].reason == "does not declare SupportsClearExcept"


def test_a_prerequisite_is_tried_first_and_once_whatever_is_asked_for() -> None:
    with session(spec_of()) as opened:
        assert opened.check("SL-CLAIM-02").outcome is Outcome.PASS
        assert opened.check("SL-CLAIM-01") is opened.check("SL-CLAIM-01")


def test_a_gap_is_still_tried_and_waived_with_its_reason() -> None:
    spec = spec_of(factory_of(misbehaving.Forgetful), gaps={"SL-CLAIM-01": "no unique key"})
    results = judged(spec)
    assert results["SL-CLAIM-01"].outcome is Outcome.WAIVED
    assert results["SL-CLAIM-01"].reason == "no unique key"
    assert failure_of(results["SL-CLAIM-01"]).contradiction.startswith("created by the second claim")
    assert results["SL-CLAIM-02"].outcome is Outcome.FAIL, "a gap does not hide what builds on it"


def test_a_gap_that_has_closed_fails() -> None:
    results = judged(spec_of(gaps={"SL-CLAIM-01": "no unique key"}))
    assert results["SL-CLAIM-01"].outcome is Outcome.FAIL
    assert "has closed: take SL-CLAIM-01 out" in failure_of(results["SL-CLAIM-01"]).contradiction


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
    assert results["SL-LIST-01"].reason == "the factory raised OSError: no such host"


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


def test_a_directory_is_gone_when_the_session_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with session(spec_of()) as opened:
        opened.check("SL-LIST-01")
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_has_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / "workflow-conformance-dead"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    (abandoned / "database").touch()
    with session(spec_of()) as opened, session(spec_of()) as second:
        opened.check("SL-LIST-01")
        second.check("SL-LIST-01")
        assert not abandoned.exists()
        assert len(list(tmp_path.iterdir())) == 2, "a run that lives is left alone"


def registry_with(function: Any, options: Options | None = None) -> Registry:
    registry = Registry()
    given: dict[str, Any] = {} if options is None else {"options": options}
    clause("SL-ODD-01", MUST, text="A rule.", why="A reason.", hints=["A hint."], registry=registry, **given)(function)
    return registry


def test_a_clause_that_looks_at_nothing_is_a_harness_error() -> None:
    async def looks_at_nothing(ctx: Context[StepLedger]) -> None:
        await ctx.adapter.list("stage")

    result = judged(spec_of(), registry_with(looks_at_nothing))["SL-ODD-01"]
    assert result.outcome is Outcome.HARNESS_ERROR


def test_a_verdict_that_the_adapter_swallows_stands() -> None:
    async def fails_inside(ctx: Context[StepLedger]) -> None:
        try:
            ctx.expect("it", 1).equals(2)
        except AssertionError:
            await ctx.adapter.list("stage")

    result = judged(spec_of(), registry_with(fails_inside))["SL-ODD-01"]
    assert result.outcome is Outcome.FAIL


def test_a_clause_trips_over_odd_answers_and_is_not_met() -> None:
    async def indexes(ctx: Context[StepLedger]) -> None:
        ctx.expect("id", (await ctx.adapter.list("stage"))[0].step_id).equals("step")

    result = judged(spec_of(), registry_with(indexes))["SL-ODD-01"]
    assert result.outcome is Outcome.FAIL
    said = failure_of(result)
    assert said.contradiction == "With these answers the clause could not go on: IndexError(list index out of range)."
    assert said.trace is not None


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


def test_the_seed_decides_what_is_random() -> None:
    drawn: list[float] = []

    async def draws(ctx: Context[StepLedger]) -> None:
        drawn.append(ctx.random.random())
        ctx.expect("list", await ctx.adapter.list("stage")).equals([])

    for seed in (1, 1, 2):
        judged(spec_of(), registry_with(draws), seed=seed)
    assert drawn[0] == drawn[1] != drawn[2]


def test_time_is_shifted_where_it_can_be_and_else_the_clause_does_not_apply() -> None:
    shifted: list[float] = []

    @asynccontextmanager
    async def shifting(env: Env) -> AsyncGenerator[Fixture[PocketLedger]]:
        async def shift_clock(delta: Any) -> None:
            shifted.append(delta.total_seconds())
            env.clock.advance(delta)

        yield Fixture(adapter=PocketLedger(env), shift_clock=shift_clock)

    database = replace(spec_of().parameters, clock="database")
    assert judged(spec_of(shifting, parameters=database))["SL-PATCH-01"].outcome is Outcome.PASS
    assert shifted == [1.0]
    result = judged(spec_of(parameters=database))["SL-PATCH-01"]
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
