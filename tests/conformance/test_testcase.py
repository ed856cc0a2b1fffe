"""What the generated classes refuse, and how they are called."""

from __future__ import annotations

from typing import Any, Final

import pytest

from conformance import job_queue_conformance, step_ledger_conformance
from conformance.backend import Spec
from conformance.choice import Choice, Profile
from conformance.clause import Port
from conformance.runner import UsageError
from conformance.testcase import case_for
from tests.conformance.pocket_clauses import REGISTRY
from tests.conformance.pocket_ledger import pocket
from workflow_adapters.ports.job_queue import SupportsDefer
from workflow_adapters.ports.step_ledger import SupportsClearExcept

PROFILES: Final[tuple[Profile, ...]] = ("full", "quick")
# Under another name than Test…, and taken apart below: pytest must not collect it here.
METHOD = "test_SL_CLAIM_01_must_claims_once"


def case(**options: Any) -> type[Any]:
    return case_for(Spec(port=Port.STEP_LEDGER, factory=pocket, **options), module=__name__, registry=REGISTRY)


def test_a_quick_class_leaves_out_what_is_long() -> None:
    spec = Spec(port=Port.STEP_LEDGER, factory=pocket)
    full, quick = (
        {
            name
            for name in vars(case_for(spec, module=__name__, choice=Choice(profile=profile)))
            if name.startswith("test_")
        }
        for profile in PROFILES
    )
    assert {name[5:].replace("_", "-")[:18] for name in full - quick} == {"SL-CANCELLATION-02"}
    assert quick < full


def test_a_method_for_each_clause_with_id_level_and_name() -> None:
    methods = [name for name in vars(case()) if name.startswith("test_")]
    assert methods == [
        METHOD,
        "test_SL_CLAIM_02_must_one_of_two_creates",
        "test_SL_LIST_01_must_lists_nothing",
        "test_SL_PATCH_01_should_stamps_updates",
        "test_SL_KEEP_01_must_keeps_what_is_named",
    ]
    assert getattr(case(), METHOD).__doc__ == (
        "SL-CLAIM-01 MUST: The first claim of a step creates it, and a second one does not."
    )


def test_a_clause_about_another_kind_of_adapter_has_no_method() -> None:
    from conformance.clause import Parameters

    methods = vars(case(capabilities=[SupportsClearExcept], parameters=Parameters(durability="crash")))
    assert "test_SL_KEEP_01_must_keeps_what_is_named" not in methods


def test_overriding_a_clause_is_an_error() -> None:
    with pytest.raises(TypeError, match=f"{METHOD} is a clause; declare a gap"):
        type("Mine", (case(),), {METHOD: lambda self: None})


def test_replacing_a_clause_later_is_an_error_when_the_class_is_run() -> None:
    mine = case()
    setattr(mine, METHOD, lambda self: None)
    with pytest.raises(TypeError, match=f"{METHOD} is a clause"):
        mine.setUpClass()


def test_tests_of_ones_own_may_be_added() -> None:
    extended = type("Mine", (case(),), {"test_mine": lambda self: None})
    assert hasattr(extended, METHOD)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"capabilities": [SupportsDefer]}, "SupportsDefer is no capability of StepLedger; it has SupportsClearExcept"),
        ({"gaps": {"SL-NONE-01": "why not"}}, "'SL-NONE-01' is neither a clause nor a capability of StepLedger"),
        ({"gaps": {"SL-CLAIM-01": " "}}, "the gap SL-CLAIM-01 has no reason"),
        ({"gaps": {"SL-KEEP-01": "no"}}, "SL-KEEP-01 is about a clause that does not apply"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        case(**options)


def test_the_public_functions_say_where_the_class_stands() -> None:
    made = step_ledger_conformance(pocket, capabilities=[SupportsClearExcept], name="pocket")
    assert made.__module__ == __name__
    assert made.__name__ == "StepLedgerConformance"
    assert made.spec.name == "pocket"
    assert job_queue_conformance(pocket).spec.port is Port.JOB_QUEUE
