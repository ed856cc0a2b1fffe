"""Keys of two parts: an adapter that joins them finds one row for two keys."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.backend import Env, Spec
from conformance.choice import Choice
from conformance.clause import Parameters, Port
from conformance.runner import run_sync
from conformance.suites.values import ALIKE
from tests.conformance.misbehaving import factory_of
from tests.conformance.pocket_ledger import PocketLedger, Rows
from workflow_adapters.ports.step_ledger import SupportsClearExcept


class Joined(Rows):
    """The rows of a ledger under one text each."""

    between = "/"

    def __getitem__(self, key: tuple[str, str]) -> Any:
        return super().__getitem__(self._joined(key))

    def __setitem__(self, key: tuple[str, str], value: Any) -> None:
        super().__setitem__(self._joined(key), value)

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(self._joined(key))

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        return super().get(self._joined(key), default)

    def _joined(self, key: tuple[str, str]) -> Any:
        return self.between.join(key)


class JoiningLedger(PocketLedger):
    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.rows = Joined()


def said_of(between: str, monkeypatch: pytest.MonkeyPatch, parents: Any) -> tuple[str, str]:
    monkeypatch.setattr(Joined, "between", between)
    spec = Spec(
        port=Port.STEP_LEDGER,
        factory=factory_of(JoiningLedger),
        capabilities=[SupportsClearExcept],
        parameters=Parameters(parents=parents),
    )
    (result,) = run_sync(spec, Choice(only=["SL-CLAIM-06"])).results
    return result.outcome, "" if result.failure is None else result.failure.contradiction


@pytest.mark.parametrize("between", ["", "/", ":", "|", "-", "_", ".", ",", "#", " ", "\x1f"])
def test_a_ledger_that_joins_its_key_is_found_out(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_of(between, monkeypatch, "unchecked") == ("FAIL", "created of the claim is False, but must be True.")


def test_ids_that_can_not_be_chosen_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_of("/", monkeypatch, "checked") == ("PASS", "")


def test_no_two_keys_are_the_same() -> None:
    assert len(set(ALIKE)) == len(ALIKE)
