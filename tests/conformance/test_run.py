"""`await conformance.run(spec)` and `await acheck(clause, adapter)` from the caller's own loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

import conformance
from conformance.backend import Env, Spec
from conformance.choice import Choice
from conformance.clause import Parameters, Port
from conformance.outcome import Outcome
from conformance.registry import load
from conformance.testcase import case_for
from tests.conformance.misbehaving import Hanging, Swallowing, factory_of
from tests.conformance.pocket_clauses import REGISTRY
from tests.conformance.pocket_ledger import PocketLedger, pocket
from workflow_adapters.clock import ManualClock
from workflow_adapters.ports.step_ledger import SupportsClearExcept

CLAIM, RACE, PATCH, KEEP = (REGISTRY.get(id) for id in ("SL-CLAIM-01", "SL-CLAIM-02", "SL-PATCH-01", "SL-KEEP-01"))


def spec_of(factory: Any = pocket) -> Spec:
    return Spec(port=Port.STEP_LEDGER, factory=factory, capabilities=[SupportsClearExcept])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_run_from_either_loop(backend: str) -> None:
    report = anyio.run(lambda: conformance.run(spec_of(), registry=REGISTRY), backend=backend)
    assert report.exit_code is conformance.ExitCode.CONFORMANT
    assert len(report.results) == len(REGISTRY.clauses())


def test_run_does_not_stop_the_callers_loop() -> None:
    async def both() -> tuple[conformance.Report, int]:
        ticks = 0
        judging = asyncio.ensure_future(
            conformance.run(spec_of(factory_of(Swallowing)), Choice(time_scale=0.2), registry=REGISTRY)
        )
        while not judging.done():
            ticks += 1
            await asyncio.sleep(0.01)
        return judging.result(), ticks

    report, ticks = asyncio.run(both())
    assert report.exit_code is conformance.ExitCode.NOT_CONFORMANT
    assert ticks > 10


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_run_ends_and_cleans_up(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def cancelled() -> bool:
        with anyio.move_on_after(0.2) as scope:
            await conformance.run(spec_of(factory_of(Hanging)), registry=REGISTRY)
        return scope.cancelled_caught

    assert anyio.run(cancelled, backend=backend)
    assert list(tmp_path.iterdir()) == []


def ledgers(count: int, tmp_path: Path, kind: type = PocketLedger) -> tuple[ManualClock, list[Any]]:
    clock = ManualClock()
    envs = [
        Env(namespace=f"native-{tmp_path}", instance="A", tmp_path=tmp_path, dsn=None, seed=0, clock=clock)
        for _ in range(count)
    ]
    return clock, [kind(env) for env in envs]


def test_acheck_in_the_callers_loop(tmp_path: Path) -> None:
    clock, (first, second) = ledgers(2, tmp_path)

    async def check() -> list[Outcome]:
        return [
            (await conformance.acheck(CLAIM, first, clock=clock)).outcome,
            (await conformance.acheck(RACE, first, second, clock=clock)).outcome,
            (await conformance.acheck(KEEP, first, clock=clock)).outcome,
            (await conformance.acheck("SL-DECLARE-01", first)).outcome,
        ]

    assert asyncio.run(check()) == [Outcome.PASS] * 4


def test_acheck_says_what_it_can_not_judge(tmp_path: Path) -> None:
    _, (first,) = ledgers(1, tmp_path)

    async def check() -> list[conformance.Result]:
        return [
            await conformance.acheck(RACE, first),
            await conformance.acheck(PATCH, first),
            await conformance.acheck(KEEP, first, capabilities=[]),
            await conformance.acheck(KEEP, first, parameters=Parameters(durability="crash")),
        ]

    results = asyncio.run(check())
    assert [result.outcome.value for result in results] == ["NOT_TESTED", *["NOT_APPLICABLE"] * 3]
    assert results[0].reason == "needs 2 adapters; 1 given"


def test_acheck_fails_with_the_whole_account(tmp_path: Path) -> None:
    clock, (first,) = ledgers(1, tmp_path, Hanging)
    with pytest.raises(AssertionError) as caught:
        asyncio.run(conformance.acheck(CLAIM, first, clock=clock))
    assert "claim has not come back within 2 s." in str(caught.value)


def test_a_class_offers_the_same_with_what_it_declares(tmp_path: Path) -> None:
    case = case_for(Spec(port=Port.STEP_LEDGER, factory=pocket), module=__name__, registry=REGISTRY)
    clock, (first, second) = ledgers(2, tmp_path)

    async def check() -> list[str]:
        return [
            (await case.acheck("SL-CLAIM-02", first, second, clock=clock)).outcome.value,
            (await case.acheck("SL-KEEP-01", first, clock=clock)).outcome.value,
        ]

    assert asyncio.run(check()) == ["PASS", "NOT_APPLICABLE"]


def test_the_packages_names_are_all_there() -> None:
    for name in conformance.__all__:
        assert getattr(conformance, name) is not None
    assert set(conformance.__all__) <= set(dir(conformance))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        conformance.nothing  # noqa: B018 - looking it up is what fails
    assert load() is load()
