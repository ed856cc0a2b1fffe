"""One adapter under trial: what blocks what, gaps, and verdicts on odd clauses."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.choice import Loop
from conformance.context import Context
from conformance.outcome import Outcome, Result
from tests.conformance import misbehaving
from tests.conformance.misbehaving import factory_of
from tests.conformance.pocket_ledger import pocket, pocket_with_reset
from tests.conformance.trials import IDS, failure_of, judged, outcomes, registry_with, session, spec_of
from workflow_adapters.ports.step_ledger import StepLedger


@pytest.mark.parametrize("factory", [pocket, pocket_with_reset])
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_good_adapter_passes_everything(factory: Any, loop: Loop) -> None:
    with session(spec_of(factory), loop=loop) as opened:
        results = {id: opened.check(id) for id in IDS}
        left = opened.close()
    assert outcomes(results) == dict.fromkeys(IDS, "PASS")
    assert all(result.checks > 0 for result in results.values())
    assert left == ""


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


def test_what_was_found_elsewhere_is_not_tried_again() -> None:
    with session(spec_of()) as opened:
        opened.learn([Result(clause_id="SL-CLAIM-01", outcome=Outcome.FAIL)])
        blocked = opened.check("SL-CLAIM-02")
    assert (blocked.outcome, blocked.reason) == (Outcome.NOT_TESTED, "builds on SL-CLAIM-01, which is FAIL")


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


def test_the_seed_decides_what_is_random() -> None:
    drawn: list[float] = []

    async def draws(ctx: Context[StepLedger]) -> None:
        drawn.append(ctx.random.random())
        ctx.expect("list", await ctx.adapter.list("stage")).equals([])

    for seed in (1, 1, 2):
        judged(spec_of(), registry_with(draws), seed=seed)
    assert drawn[0] == drawn[1] != drawn[2]
