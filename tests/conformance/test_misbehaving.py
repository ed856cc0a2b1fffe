"""Adapters that do what none should: each is called by its name, and the run goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.outcome import Outcome
from tests.conformance import misbehaving
from tests.conformance.misbehaving import factory_of
from tests.conformance.pocket_ledger import PocketLedger
from tests.conformance.trials import failure_of, judged, outcomes, spec_of
from workflow_adapters.inputs.step_ledger import NewStep
from workflow_adapters.records.step_ledger import StepClaim


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


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", [misbehaving.Hanging, misbehaving.HangingInTasks])
def test_a_time_limit_reads_the_same_on_every_loop(kind: type, loop: str) -> None:
    failure = failure_of(judged(spec_of(factory_of(kind)), time_scale=0.2, loop=loop)["SL-CLAIM-01"])
    assert failure.contradiction == "claim has not come back within 0.4 s."
    assert failure.history[-1].answer == "cancelled"


def test_an_adapter_that_spins_without_awaiting_is_left_behind() -> None:
    results = judged(spec_of(factory_of(misbehaving.Spinning)), time_scale=0.2)
    # The call's own record may have seen the exception that ends the abandoned thread, or not yet.
    assert "within 0.4 s, and blocks the event loop" in failure_of(results["SL-CLAIM-01"]).contradiction
    assert results["SL-LIST-01"].outcome is Outcome.PASS


def test_an_executor_that_a_driver_shares_is_no_leak_and_one_for_each_call_is() -> None:
    shared = ThreadPoolExecutor(2)

    class Sharing(PocketLedger):
        async def claim(self, step: NewStep) -> StepClaim:
            shared.submit(int).result()
            return await super().claim(step)

    class Wasting(PocketLedger):
        async def claim(self, step: NewStep) -> StepClaim:
            for _ in range(65):
                misbehaving.KEPT.append(ThreadPoolExecutor(1))
                misbehaving.KEPT[-1].submit(int).result()
            return await super().claim(step)

    assert judged(spec_of(factory_of(Sharing)))["SL-CLAIM-01"].outcome is Outcome.PASS
    assert "threads" in failure_of(judged(spec_of(factory_of(Wasting)))["SL-CLAIM-01"]).contradiction
    for executor in [shared, *misbehaving.KEPT]:
        if isinstance(executor, ThreadPoolExecutor):
            executor.shutdown()
